"""Host calls at compile time: what `const_fold` does with a call of a pure host function whose arguments are constants.

The implementation is called with Python values, as the machine would call it. Where it raises, or returns what the
machine would have to refuse, the call stays, and goes wrong when the program runs, if it ever does.
"""

from __future__ import annotations

from typing import Any, Final

from allocators import Allocator
from garden.interrupts import raised_by_handler
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.semantics import MAX_INT, MIN_INT, double_of, word_of
from garden.types.types import BOOL, DOUBLE, INT, STR

#: Bytes of text that folding may make. A larger one is cheaper to make at run time than to keep in the program.
MAX_TEXT: Final = 4096


def fold_host_call(ir: Ir[Allocator], inst: int) -> bool:
    """Turn a `SYS` into the constant that it gives; whether that was possible."""
    host = ir.checked.hosts[ir.a[inst]]
    if not host.pure or host.machine or not host.implemented or ir.type[inst] not in (INT, BOOL, DOUBLE, STR):
        return False
    arguments: list[Any] = []
    text = 0
    largest = 1
    for value in ir.list_at(ir.b[inst]):
        if ir.op[value] not in (op.CONST, op.CONST_STR):
            return False
        argument = _python_value(ir, value)
        if isinstance(argument, str):
            text += len(argument.encode())
        elif ir.type[value] == INT:
            largest = max(largest, argument)
        arguments.append(argument)
    # What repeats a text must not do so a billion times while compiling.
    if text and largest > MAX_TEXT // text:
        return False
    try:
        result = host.implementation(*arguments)
    except Exception as error:
        if raised_by_handler(error):
            raise
        return False
    return _set_constant(ir, inst, result)


def _python_value(ir: Ir[Allocator], value: int) -> Any:
    word: int = ir.imm[value]
    type: int = ir.type[value]
    if type == STR:
        return ir.checked.ast.symbols.lookup(word).decode()
    if type == DOUBLE:
        return double_of(word)
    return word != 0 if type == BOOL else word


def _set_constant(ir: Ir[Allocator], inst: int, result: Any) -> bool:
    type: int = ir.type[inst]
    opcode = op.CONST
    if type == BOOL and isinstance(result, bool):
        word = 1 if result else 0
    elif type == INT and isinstance(result, int) and not isinstance(result, bool) and MIN_INT <= result <= MAX_INT:
        word = result
    elif type == DOUBLE and isinstance(result, float) and result == result:
        word = word_of(result)
    elif type == STR and isinstance(result, str):
        try:
            text = result.encode()
        except UnicodeEncodeError:
            # A Python string may have surrogates, a Str may not.
            return False
        if len(text) > MAX_TEXT:
            return False
        opcode = op.CONST_STR
        word = ir.checked.ast.symbols.intern(text)
    else:
        return False
    ir.op[inst] = opcode
    ir.a[inst] = 0
    ir.b[inst] = 0
    ir.imm[inst] = word
    return True
