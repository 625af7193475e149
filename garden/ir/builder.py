"""Builder: adds instructions at the end of a block, one method for each form of them."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.types.types import STR

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Builder(Generic[A]):
    """Adds to `block` of `ir`; assign another block to continue there.

    Every method returns the row of the instruction, which is its result if it has one. `type` is a type id, `pos` a
    byte offset in the source, `offset` and `size` are bytes. Lists and edges stand in the pool already.
    """

    __slots__ = ("block", "ir")

    def __init__(self, ir: Ir[A], block: i64) -> None:
        self.ir: Final = ir
        self.block = block

    def _append(self, inst: i64) -> i64:
        self.ir.append(self.block, inst)
        return inst

    def const(self, type: i64, bits: i64, pos: i64) -> i64:
        """An Int, a Bool as 0 or 1, or the bits of a Double."""
        return self._append(self.ir.add(op.CONST, type, pos, imm=bits))

    def const_str(self, symbol: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.CONST_STR, STR, pos, imm=symbol))

    def unary(self, opcode: i64, type: i64, operand: i64, pos: i64) -> i64:
        """A sign or a cast."""
        return self._append(self.ir.add(opcode, type, pos, a=operand))

    def binary(self, opcode: i64, type: i64, left: i64, right: i64, pos: i64) -> i64:
        return self._append(self.ir.add(opcode, type, pos, a=left, b=right))

    def call(self, type: i64, function: i64, arguments: i64, pos: i64) -> i64:
        """A call of a function row; type 0 for Void."""
        return self._append(self.ir.add(op.CALL, type, pos, a=function, b=arguments))

    def sys(self, type: i64, host: i64, arguments: i64, pos: i64) -> i64:
        """A call of a host function; type 0 for Void."""
        return self._append(self.ir.add(op.SYS, type, pos, a=host, b=arguments))

    def alloc(self, type: i64, size: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.ALLOC, type, pos, imm=size))

    def store(self, value: i64, base: i64, offset: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.STORE, 0, pos, a=value, b=base, imm=offset))

    def load(self, type: i64, base: i64, offset: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.LOAD, type, pos, a=base, imm=offset))

    def addrof(self, type: i64, base: i64, offset: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.ADDROF, type, pos, a=base, imm=offset))

    def copy(self, source: i64, target: i64, size: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.COPY, 0, pos, a=source, b=target, imm=size))

    def ret(self, value: i64, pos: i64) -> i64:
        """Value 0 in a function of Void."""
        return self._append(self.ir.add(op.RET, 0, pos, a=value))

    def jump(self, edge: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.JUMP, 0, pos, c=edge))

    def branch(self, condition: i64, taken: i64, other: i64, pos: i64) -> i64:
        return self._append(self.ir.add(op.BRANCH, 0, pos, a=condition, c=taken, d=other))
