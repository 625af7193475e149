"""Intrinsics: the operations of the runtime that garden programs lack, as a package `memory` with one LLVM text per
function.

Only the runtime and the launcher import it (see `garden.native.codegen.runtime`). An address is an Int. `LLVM` has the
text of a call: `{r}` is the name of the result, `{a}`, `{b}` and `{c}` those of the arguments, and `{u}` a number that
is unique in the function, for names inside the text. `%where` is the last parameter of every function of the runtime,
the position in the program's source at which traps are reported.

For every word of the context there are `context_NAME()` and `set_NAME(word)`, and for every message of
`garden.traps` a `trap_NAME` with as many parameters as the text has words, of which the third is left in the context
by `set_trap_c` before. `request_NAME` calls the host.

`declarations` has what else the module needs: two tables, and LLVM's own intrinsics.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from garden.errors import GardenError
from garden.host import HostFunction, Package
from garden.native import context
from garden.native.codegen import system_calls
from garden.native.codegen.body import field
from garden.traps import MESSAGES
from garden.types.types import Bool, Double, Int, Str, Type, Void
from garden.vm.heap import MAX_STR_BYTES

#: Slices of the CRC-32 table, one for each byte of a word.
_SLICES: Final = 8
#: CRC-32, bits reflected.
_POLYNOMIAL: Final = 0xEDB88320

#: The powers of ten in the table, which are all that a Double needs to be written.
FIRST_POWER: Final = -292
LAST_POWER: Final = 324


def crc_table() -> list[int]:
    """CRC-32 by slices, 32 bits an entry: entry 256 k + b is the CRC of byte b and k zero bytes after it.

    (Neither inverted at the start nor at the end.) Eight lookups then take a word at once: Kounavis and Berry, "A
    systematic approach to building high performance software-based CRC generators", 2005.
    """
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    for index in range(256, 256 * _SLICES):
        before = table[index - 256]
        table.append(before >> 8 ^ table[before & 0xFF])
    return table


def powers_table() -> list[int]:
    """The powers of ten from `FIRST_POWER` to `LAST_POWER`, two words each, upper bits first, as unsigned numbers.

    They are the upper 128 bits of the power, rounded up where it has more.
    """
    table = []
    for exponent in range(FIRST_POWER, LAST_POWER + 1):
        if exponent >= 0:
            power = 10**exponent
            shift = power.bit_length() - 128
            bits = -(-power >> shift) if shift > 0 else power << -shift
        else:
            power = 10**-exponent
            # Above a power of two and below the next, so that the quotient has 128 bits.
            bits = -(-(1 << 127 + power.bit_length()) // power)
        table += [bits >> 64, bits & (1 << 64) - 1]
    return table


def declarations() -> str:
    """LLVM text of what the intrinsics refer to, beside the context."""
    crc = ", ".join([f"i32 {word}" for word in crc_table()])
    powers = ", ".join([f"i64 {word}" for word in powers_table()])
    return f"""\
@crc_table = internal constant [{256 * _SLICES} x i32] [{crc}], align 64
@powers_table = internal constant [{2 * (LAST_POWER - FIRST_POWER + 1)} x i64] [{powers}], align 64
declare i64 @llvm.cttz.i64(i64, i1)
declare double @llvm.sqrt.f64(double)
"""


_POINTER: Final = "%p{u} = inttoptr i64 {a} to ptr\n"

#: Name, type of the result, and LLVM text; parameters are Ints named a and b unless there is more said below. What is
#: pure has a result and neither reads memory nor ends the run.
_PURE: Final[tuple[tuple[str, Type, str], ...]] = (
    ("and", Int, "{r} = and i64 {a}, {b}"),
    ("or", Int, "{r} = or i64 {a}, {b}"),
    ("xor", Int, "{r} = xor i64 {a}, {b}"),
    # The second argument is from 0 to 63.
    ("shl", Int, "{r} = shl i64 {a}, {b}"),
    ("shr", Int, "{r} = lshr i64 {a}, {b}"),
    ("sar", Int, "{r} = ashr i64 {a}, {b}"),
    # These take their arguments as unsigned.
    ("below", Bool, "{r} = icmp ult i64 {a}, {b}"),
    ("udiv", Int, "{r} = udiv i64 {a}, {b}"),
    (
        "high",
        Int,
        "%a{u} = zext i64 {a} to i128\n"
        "%b{u} = zext i64 {b} to i128\n"
        "%m{u} = mul nuw i128 %a{u}, %b{u}\n"
        "%h{u} = lshr i128 %m{u}, 64\n"
        "{r} = trunc i128 %h{u} to i64",
    ),
    # How many of the lowest bits are 0; 64 for 0.
    ("trailing_zeros", Int, "{r} = call i64 @llvm.cttz.i64(i64 {a}, i1 false)"),
    ("bits", Int, "{r} = bitcast double {a} to i64"),
    ("double", Double, "{r} = bitcast i64 {a} to double"),
    ("sqrt", Double, "{r} = call double @llvm.sqrt.f64(double {a})"),
    (
        "crc",
        Int,
        f"%p{{u}} = getelementptr inbounds [{256 * _SLICES} x i32], ptr @crc_table, i64 0, i64 {{a}}\n"
        "%w{u} = load i32, ptr %p{u}\n"
        "{r} = zext i32 %w{u} to i64",
    ),
    # Upper and lower word of a power of ten, by its exponent.
    *[
        (
            f"power_{half}",
            Int,
            f"%i{{u}} = add i64 {{a}}, {-FIRST_POWER}\n"
            f"%p{{u}} = getelementptr inbounds [2 x i64], ptr @powers_table, i64 %i{{u}}, i64 {index}\n"
            "{r} = load i64, ptr %p{u}",
        )
        for index, half in enumerate(("high", "low"))
    ],
    ("max_str_bytes", Int, f"{{r}} = add i64 0, {MAX_STR_BYTES}"),
)

_EFFECTS: Final[tuple[tuple[str, Type, str], ...]] = (
    # Addresses need not be aligned.
    ("load", Int, _POINTER + "{r} = load i64, ptr %p{u}, align 1"),
    ("load8", Int, _POINTER + "%w{u} = load i8, ptr %p{u}\n{r} = zext i8 %w{u} to i64"),
    ("store", Void, _POINTER + "store i64 {b}, ptr %p{u}, align 1"),
    # Of a constant Str: the runtime itself has none.
    ("address", Int, "{r} = add i64 {a}, 0"),
    ("store8", Void, _POINTER + "%w{u} = trunc i64 {b} to i8\nstore i8 %w{u}, ptr %p{u}"),
)

#: Parameters of what takes no Ints.
_PARAMETERS: Final = {"bits": Double, "sqrt": Double, "address": Str}


def _requests() -> Iterator[tuple[str, Type, str]]:
    """A request may end the run as a trap does, so it has the place of one."""
    where = f"store i64 %where, ptr {field('where')}\n"
    call = "call i64 @garden_request"
    yield "request_chunk", Int, f"{where}{{r}} = {call}(i64 {context.CHUNK}, i64 {{a}}, i64 0)"
    yield "request_table", Int, f"{where}{{r}} = {call}(i64 {context.TABLE}, i64 0, i64 0)"
    yield "request_write", Void, f"{where}%i{{u}} = {call}(i64 {context.WRITE}, i64 {{a}}, i64 {{b}})"


def _fields() -> Iterator[tuple[str, Type, str]]:
    for name in context.FIELD:
        yield f"context_{name}", Int, f"{{r}} = load i64, ptr {field(name)}"
        yield f"set_{name}", Void, f"store i64 {{a}}, ptr {field(name)}"


def _traps() -> Iterator[tuple[str, Type, str]]:
    for name, number, _, text in MESSAGES:
        a = "{a}" if "{a" in text or "{x" in text else "0"
        b = "{b}" if "{b" in text or "{y" in text else "0"
        yield f"trap_{name}", Void, f"call fastcc void @garden_trap(i64 {number}, i64 %where, i64 {a}, i64 {b})"


def machine_code_only(*arguments: Any) -> Any:
    """Stands in for the implementation of an intrinsic."""
    raise GardenError("an intrinsic is no function of Python")


def _function(name: str, result: Type, text: str, pure: bool) -> HostFunction:
    type = _PARAMETERS.get(name, Int)
    parameters = tuple([(letter, type) for letter in "abc" if f"{{{letter}}}" in text])
    return HostFunction("memory", name, parameters, result, machine_code_only, pure=pure, words=True)


_ALL: Final = (
    *[(row, True) for row in _PURE],
    *[
        (row, False)
        for row in (*_EFFECTS, *_requests(), *_fields(), *_traps(), *system_calls.INTRINSICS, *system_calls.LAUNCHER)
    ],
)

#: The text that stands for a call, by the name of the function.
LLVM: Final[dict[str, str]] = {name: text for (name, _, text), _ in _ALL}

#: Functions of the runtime that stay out of those that call them, since these hardly ever do, and are shorter without.
OUT_OF_LINE: Final = ("add_word", "add_pair")

#: What the runtime and the launcher import. It is none of the standard packages, so programs cannot.
MEMORY: Final = Package(
    "memory",
    "Memory, bits, and the way out, for what runs below programs.",
    [_function(name, result, text, pure) for (name, result, text), pure in _ALL],
)
