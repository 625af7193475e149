"""The standard packages."""
# Not compiled: the documentation of a function is its docstring.

from __future__ import annotations

from typing import Final

from garden.host import Package
from garden.std.arr import ARR
from garden.std.io import IO
from garden.std.math import MATH
from garden.std.opt import OPT
from garden.std.str import STR
from garden.std.testing import TESTING
from garden.std.unsafe import RUNTIME, SYSCALL

#: The standard packages by import path.
STANDARD: Final[dict[str, Package]] = {
    package.path: package for package in (ARR, IO, MATH, OPT, STR, TESTING, RUNTIME, SYSCALL)
}
