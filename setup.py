"""Compiles the hot modules with mypyc where a C compiler is present; everything else is in pyproject.toml.

`GARDEN_PURE=1` leaves them in Python. So does an editable install, whose modules must follow the source.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import setup

# What must stay in Python, and why.
UNCOMPILED = {
    "allocators/_mypyc.py",  # stand-ins for what mypyc provides
    "allocators/protocol.py",  # runtime-checkable protocols, exceptions
    "garden/errors.py",  # exceptions
    "garden/vm/interrupts.py",  # entering interpreted code is what delivers Ctrl-C
}
UNCOMPILED_PARTS = {
    "__init__.py",  # re-exports, nothing to gain
    "__main__.py",  # must run as a script
}
UNCOMPILED_PACKAGES = {
    "allocators/testing",  # Hypothesis inspects the functions it drives
    "allocators/report",
    "garden/cli",
    "garden/std",  # their docstrings are their documentation
}


def modules() -> list[str]:
    """The modules to compile, in a fixed order."""
    found = []
    for package in ("allocators", "garden"):
        for path in sorted(Path(package).rglob("*.py")):
            name = path.as_posix()
            if name in UNCOMPILED or path.name in UNCOMPILED_PARTS or path.parent.as_posix() in UNCOMPILED_PACKAGES:
                continue
            found.append(name)
    return found


def compiler() -> str | None:
    """The C compiler that extensions are built with, or None where there is none."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(command)


def extensions() -> list[object]:
    if os.environ.get("GARDEN_PURE") == "1" or "editable_wheel" in sys.argv or "develop" in sys.argv:
        return []
    if sys.platform != "win32" and compiler() is None:
        print("garden-allocators: no C compiler found, installing the pure Python flavour", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    return mypycify(
        ["--strict", *modules()],
        opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
        group_name="garden",
    )


setup(ext_modules=extensions())
