"""io: output."""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.host import Package, declare
from garden.std.text import bool_text, double_text
from garden.types.types import Bool, Double, Int, Str
from garden.vm.runtime import Runtime


@declare("io", "println", ("text", Str), machine=True, native="io_println_str")
def println_str(machine: Runtime[Allocator], text: str) -> None:
    """Write a text and a newline."""
    machine.write(text + "\n")


@declare("io", "println", ("n", Int), machine=True, native="io_println_int")
def println_int(machine: Runtime[Allocator], n: int) -> None:
    """Write a number and a newline."""
    machine.write(f"{n}\n")


@declare("io", "println", ("x", Double), machine=True, native="io_println_double")
def println_double(machine: Runtime[Allocator], x: float) -> None:
    """Write a number as `str.from` does, and a newline."""
    machine.write(double_text(x) + "\n")


@declare("io", "println", ("truth", Bool), machine=True, native="io_println_bool")
def println_bool(machine: Runtime[Allocator], truth: bool) -> None:
    """Write `true` or `false` and a newline."""
    machine.write(bool_text(truth) + "\n")


@declare("io", "print", ("text", Str), machine=True, native="io_print_str")
def print_str(machine: Runtime[Allocator], text: str) -> None:
    """Write a text."""
    machine.write(text)


@declare("io", "print", ("n", Int), machine=True, native="io_print_int")
def print_int(machine: Runtime[Allocator], n: int) -> None:
    """Write a number."""
    machine.write(str(n))


@declare("io", "print", ("x", Double), machine=True, native="io_print_double")
def print_double(machine: Runtime[Allocator], x: float) -> None:
    """Write a number as `str.from` does."""
    machine.write(double_text(x))


@declare("io", "print", ("truth", Bool), machine=True, native="io_print_bool")
def print_bool(machine: Runtime[Allocator], truth: bool) -> None:
    """Write `true` or `false`."""
    machine.write(bool_text(truth))


IO: Final = Package(
    "io",
    "Output.",
    [println_str, println_int, println_double, println_bool, print_str, print_int, print_double, print_bool],
)
