"""Body: builds the text of one LLVM function, and defines garden's operations in LLVM terms.

Temporaries and labels are numbered, so that the same program always gives the same text. Traps go to blocks at the end
of the function, out of the hot path.

`garden.semantics` defines the operations. Int, addresses and all other words are i64, Double is double, Bool is i1.
"""

from __future__ import annotations

from typing import Final

from allocators._mypyc import mypyc_attr
from garden.ir import ir as op
from garden.native.context import FIELD, FIELDS, OUTPUT_BYTES, POLL
from garden.traps import DIVISION_BY_ZERO, STACK_FULL

#: Binary operations that are one instruction.
_BINARY: Final = {
    op.IADD: "add i64",
    op.ISUB: "sub i64",
    op.IMUL: "mul i64",
    op.ILT: "icmp slt i64",
    op.ILE: "icmp sle i64",
    op.IEQ: "icmp eq i64",
    op.INE: "icmp ne i64",
    op.IADD_IMM: "add i64",
    op.ISUB_IMM: "sub i64",
    op.IMUL_IMM: "mul i64",
    op.ILT_IMM: "icmp slt i64",
    op.IGT_IMM: "icmp sgt i64",
    op.IEQ_IMM: "icmp eq i64",
    op.INE_IMM: "icmp ne i64",
    op.SEQ: "icmp eq i64",
    op.SNE: "icmp ne i64",
    op.DADD: "fadd double",
    op.DSUB: "fsub double",
    op.DMUL: "fmul double",
    op.DLT: "fcmp olt double",
    op.DLE: "fcmp ole double",
}
_UNARY: Final = {
    op.INEG: "sub i64 0, {a}",
    op.DNEG: "fneg double {a}",
    op.INT_TO_DOUBLE: "sitofp i64 {a} to double",
    op.DOUBLE_TO_INT: "call i64 @llvm.fptosi.sat.i64.f64(double {a})",
    op.INT_TO_BOOL: "icmp ne i64 {a}, 0",
    op.BOOL_TO_INT: "zext i1 {a} to i64",
}
_DIVISIONS: Final = {op.IDIV: "sdiv", op.IDIV_IMM: "sdiv", op.IMOD: "srem", op.IMOD_IMM: "srem"}

#: How values of a type are converted to the word of the machine, and back.
_TO_WORD: Final = {"double": "bitcast double {a} to i64", "i1": "zext i1 {a} to i64"}
_FROM_WORD: Final = {"double": "bitcast i64 {a} to double", "i1": "trunc i64 {a} to i1"}

#: Weights of a branch whose first target is rarely taken: see `module_tail`.
UNLIKELY: Final = "!prof !1"

_CONTEXT: Final = f"[{len(FIELDS)} x i64]"


def field(name: str) -> str:
    """The LLVM expression for the address of a word of the context."""
    return f"getelementptr inbounds ({_CONTEXT}, ptr @context, i64 0, i64 {FIELD[name]})"


def shared_data(argument_words: int) -> str:
    """What machine code and its host share. `arguments` has so many words."""
    return f"""\
@context = hidden global {_CONTEXT} zeroinitializer, align 16
@arguments = hidden global [{argument_words} x i64] zeroinitializer, align 16
@output_buffer = hidden global [{OUTPUT_BYTES} x i8] zeroinitializer, align 16
"""


def external_data() -> str:
    """The same for a module that finds it in another."""
    return f"""\
@context = external hidden global {_CONTEXT}, align 16
@output_buffer = external hidden global [{OUTPUT_BYTES} x i8], align 16
"""


def declarations(stack_pointer: str) -> str:
    """What every module has beside its functions; `stack_pointer` is the name of that register.

    `garden_poll` looks for Ctrl-C, and `garden_low` also for the end of the stack, which
    Ctrl-C moves; they keep all registers, so that the code around a call of them is as if it were not there.
    """
    return f"""\
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i64 @llvm.read_register.i64(metadata)
declare ptr @llvm.frameaddress.p0(i32)
!0 = !{{!"{stack_pointer}"}}
!1 = !{{!"branch_weights", i32 1, i32 1000000}}
define internal fastcc void @garden_trap(i64 %message, i64 %where, i64 %a, i64 %b)
    noinline noreturn cold "frame-pointer"="all" {{
  store i64 %message, ptr {field("trap")}
  store i64 %where, ptr {field("where")}
  store i64 %a, ptr {field("trap_a")}
  store i64 %b, ptr {field("trap_b")}
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  store ptr %frame, ptr {field("frame")}
  call void @garden_leave()
  unreachable
}}
define internal preserve_mostcc void @garden_poll(i64 %where) noinline cold "frame-pointer"="all" {{
  store i64 %where, ptr {field("where")}
  %answer = call i64 @garden_request(i64 {POLL}, i64 0, i64 0)
  ret void
}}
define internal preserve_mostcc void @garden_low(i64 %where) noinline cold "frame-pointer"="all" {{
  call preserve_mostcc void @garden_poll(i64 %where)
  %pointer = call i64 @llvm.read_register.i64(metadata !0)
  %limit = load i64, ptr {field("stack_limit")}
  %low = icmp ult i64 %pointer, %limit
  br i1 %low, label %full, label %enough
full:
  call fastcc void @garden_trap(i64 {STACK_FULL}, i64 %where, i64 0, i64 0)
  unreachable
enough:
  ret void
}}
"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Body:
    """Lines of one function. `block` is the label of the block that they go to at the moment."""

    __slots__ = ("_count", "_lines", "_traps", "block")

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._traps: list[str] = []
        self._count = 0
        self.block = ""

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}\n")

    def value(self, text: str) -> str:
        """Add an instruction that has a result, and return the name of that."""
        self._count += 1
        name = f"%t{self._count}"
        self._lines.append(f"  {name} = {text}\n")
        return name

    def label(self) -> str:
        """A new label, for `place`."""
        self._count += 1
        return f"L{self._count}"

    def place(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:\n")
        self.block = label

    def take(self) -> str:
        """The lines so far, which are then forgotten; names go on counting."""
        text = "".join(self._lines)
        self._lines.clear()
        return text

    def take_traps(self) -> str:
        """The blocks of the traps, which are then forgotten."""
        text = "".join(self._traps)
        self._traps.clear()
        return text

    def unless(self, condition: str, cold: str) -> None:
        """Go to a label where a condition holds, which is hardly ever, and on otherwise."""
        after = self.label()
        self.line(f"br i1 {condition}, label %{cold}, label %{after}, {UNLIKELY}")
        self.place(after)

    def trap_if(self, condition: str, message: int, where: str, a: str = "0", b: str = "0") -> None:
        """End the run where a condition holds."""
        label = self.label()
        self._traps.append(
            f"{label}:\n  call fastcc void @garden_trap(i64 {message}, i64 {where}, i64 {a}, i64 {b})\n  unreachable\n"
        )
        self.unless(condition, label)

    def store_field(self, name: str, word: str) -> None:
        self.line(f"store i64 {word}, ptr {field(name)}")

    def pointer(self, address: str, offset: int | str = 0) -> str:
        """A pointer to what lies at an address, so many bytes further."""
        base = self.value(f"inttoptr i64 {address} to ptr")
        if offset == 0:
            return base
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def to_word(self, type: str, a: str) -> str:
        """The word of a value of an LLVM type."""
        return self.value(_TO_WORD[type].format(a=a)) if type in _TO_WORD else a

    def from_word(self, type: str, a: str) -> str:
        """The value of an LLVM type that a word stands for."""
        return self.value(_FROM_WORD[type].format(a=a)) if type in _FROM_WORD else a

    def template(self, text: str, arguments: list[str]) -> str:
        """Add the text of an intrinsic, and return the name of its result, 0 where it has none."""
        self._count += 1
        result = f"%t{self._count}"
        filled = text.format(r=result, u=f".{self._count}", **dict(zip("abc", arguments, strict=False)))
        for line in filled.splitlines():
            self.line(line)
        return result if "{r}" in text else "0"

    def unary(self, operation: int, a: str) -> str:
        return self.value(_UNARY[operation].format(a=a))

    def binary(self, operation: int, a: str, b: str, where: str, type: str = "i64") -> str:
        """An operation on two operands. `type` is that of the operands of a comparison for equality."""
        if operation in _DIVISIONS:
            return self._divide(_DIVISIONS[operation], a, b, where)
        if operation == op.DDIV:
            zero = self.value(f"fcmp oeq double {b}, 0.0")
            self.trap_if(zero, DIVISION_BY_ZERO, where)
            return self.value(f"fdiv double {a}, {b}")
        instruction = _BINARY[operation]
        if type == "i1":
            instruction = instruction.replace("i64", "i1")
        return self.value(f"{instruction} {a}, {b}")

    def _divide(self, instruction: str, a: str, b: str, where: str) -> str:
        # 0 traps, and -1 must not reach the processor, which overflows: one comparison finds both.
        shifted = self.value(f"add i64 {b}, 1")
        special = self.value(f"icmp ult i64 {shifted}, 2")
        cold, usual, after = self.label(), self.label(), self.label()
        self.line(f"br i1 {special}, label %{cold}, label %{usual}, {UNLIKELY}")
        self.place(cold)
        zero = self.value(f"icmp eq i64 {b}, 0")
        self.trap_if(zero, DIVISION_BY_ZERO, where)
        negated = self.value(f"sub i64 0, {a}") if instruction == "sdiv" else "0"
        from_cold = self.block
        self.line(f"br label %{after}")
        self.place(usual)
        result = self.value(f"{instruction} i64 {a}, {b}")
        self.line(f"br label %{after}")
        self.place(after)
        return self.value(f"phi i64 [ {result}, %{usual} ], [ {negated}, %{from_cold} ]")
