"""The peephole's rules on code made by hand, and that what refers to moved code follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from allocators import Arena, MetricAllocator, PageAlloc
from allocators.collections import Interner
from garden.bytecode import ops
from garden.bytecode.code import Code
from garden.bytecode.ops import encode
from garden.bytecode.peephole import peephole
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram
from tests.support.encoding import encode_imm16

Make = Callable[..., Code[Any]]


@pytest.fixture
def make() -> Iterator[Make]:
    """Code of one function, whose pcs start at 2."""
    memory = MetricAllocator(Arena(PageAlloc()))
    ast = Ast(memory, Source("test", b""), Interner(memory), Tokens(memory))
    checked = CheckedProgram(memory, ast)
    codes = []

    def make_code(
        words: list[int], *, constants: list[int] | None = None, callee: list[int] | None = None
    ) -> Code[Any]:
        code = Code(memory, checked)
        codes.append(code)
        end = 2 + len(words)
        code.words.extend([encode(ops.CALL, imm=2), encode(ops.HALT), *words, *(callee or [])])
        code.positions.extend(range(0, 10 * len(code.words), 10))
        code.constants.extend(constants or [])
        code.functions.append(0, 2, end, 2)
        if callee:
            code.functions.append(0, end, end + len(callee), 1)
        peephole(code, memory)
        return code

    yield make_code
    for code in codes:
        code.close()
    checked.close()
    ast.close()
    assert memory.live_blocks == 0


RET = encode(ops.RET)
NEGATE = encode(ops.INEG, 0, 0)


def jmp(target: int) -> int:
    return encode(ops.JMP, imm=target)


def tidied(code: Code[Any]) -> list[int]:
    return list(code.words)[2 : code.functions.columns[2][1]]


def test_tidy_code_stays_as_it_is(make: Make) -> None:
    words = [encode_imm16(ops.JMPNE_IMM, 0, 5, 5), NEGATE, RET, encode(ops.IADD, 0, 0, 1), RET]
    assert tidied(make(words)) == words


def test_a_jump_to_a_jump_goes_where_that_goes(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=5), NEGATE, RET, jmp(7), RET, NEGATE, RET]
    assert tidied(make(words)) == [encode(ops.JMPT, 0, imm=5), NEGATE, RET, NEGATE, RET]


def test_a_chain_of_jumps_is_followed_to_its_end(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=4), RET, jmp(5), jmp(6), jmp(7), NEGATE, RET]
    assert tidied(make(words)) == [encode(ops.JMPT, 0, imm=4), RET, NEGATE, RET]


def test_a_jump_to_a_return_is_a_return(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=5), NEGATE, jmp(6), encode(ops.INEG, 1, 1), RET]
    assert tidied(make(words)) == [encode(ops.JMPT, 0, imm=5), NEGATE, RET, encode(ops.INEG, 1, 1), RET]


def test_what_cannot_be_reached_goes(make: Make) -> None:
    assert tidied(make([RET, NEGATE, NEGATE, RET])) == [RET]


def test_a_jump_to_what_follows_goes(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=4), jmp(4), NEGATE, RET]
    assert tidied(make(words)) == [encode(ops.JMPT, 0, imm=3), NEGATE, RET]


def test_a_jump_to_itself_stays(make: Make) -> None:
    assert tidied(make([jmp(2)])) == [jmp(2)]


def test_a_move_of_a_register_to_itself_goes(make: Make) -> None:
    assert tidied(make([encode(ops.MOV, 3, 3), NEGATE, encode(ops.MOV, 0, 0), RET])) == [NEGATE, RET]


def test_a_result_that_only_moves_on_is_made_where_it_goes(make: Make) -> None:
    words = [encode(ops.IADD, 2, 0, 1), encode(ops.MOV, 0, 2), RET]
    assert tidied(make(words)) == [encode(ops.IADD, 0, 0, 1), RET]


def test_moves_in_a_row_become_one(make: Make) -> None:
    words = [encode(ops.MOV, 2, 1), encode(ops.MOV, 0, 2), RET]
    assert tidied(make(words)) == [encode(ops.MOV, 0, 1), RET]


@pytest.mark.parametrize(
    "reader",
    [
        [encode(ops.IADD, 0, 0, 2), RET],
        [encode(ops.IADD, 0, 2, 0), RET],
        [encode(ops.PUSH, 2), encode(ops.POP, 1), RET],
        [encode_imm16(ops.JMPEQ_IMM, 2, 0, 5), RET],
        [encode(ops.CALL, imm=2), RET],
        [encode(ops.SYS, 3, imm=0), RET],
        [encode(ops.TAIL, imm=2)],
        [jmp(2)],
    ],
)
def test_a_result_that_is_read_again_is_not_moved(make: Make, reader: list[int]) -> None:
    words = [encode(ops.IMUL, 2, 0, 1), encode(ops.MOV, 0, 2), *reader]
    assert tidied(make(words))[:2] == words[:2]


def test_a_result_that_is_returned_is_not_moved(make: Make) -> None:
    words = [encode(ops.IMUL, 0, 0, 1), encode(ops.MOV, 1, 0), RET]
    assert tidied(make(words)) == words


def test_a_result_is_not_moved_across_a_target(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=4), encode(ops.IMUL, 2, 0, 1), encode(ops.MOV, 0, 2), RET]
    assert tidied(make(words)) == words


def test_a_result_is_not_moved_where_a_jump_leads_behind_the_move(make: Make) -> None:
    words = [encode(ops.JMPT, 0, imm=5), encode(ops.IMUL, 2, 0, 1), encode(ops.MOV, 0, 2), RET]
    assert tidied(make(words)) == words


def test_jumps_calls_functions_and_positions_follow_what_moves(make: Make) -> None:
    words = [encode(ops.NOP), encode(ops.JMPT, 0, imm=6), encode(ops.NOP), encode(ops.CALL, imm=8), NEGATE, RET]
    code = make(words, callee=[encode(ops.NOP), RET])
    assert tidied(code) == [encode(ops.JMPT, 0, imm=4), encode(ops.CALL, imm=6), NEGATE, RET]
    assert list(code.words)[:2] == [encode(ops.CALL, imm=2), encode(ops.HALT)]
    assert list(code.functions.column(1)) == [0, 2, 6]
    assert list(code.functions.column(2)) == [0, 6, 7]
    assert list(code.positions) == [0, 10, 30, 50, 60, 70, 90]


def test_switch_tables_follow_what_moves(make: Make) -> None:
    words = [encode(ops.NOP), encode(ops.SWITCH, 0, imm=1), jmp(6), RET, NEGATE, encode(ops.NOP), NEGATE, RET]
    code = make(words, constants=[77, 0, 5, 2, 4, 5, 7])
    # The default leads through a jump; what follows a gap stands where the gap begins.
    assert tidied(code) == [encode(ops.SWITCH, 0, imm=1), RET, NEGATE, NEGATE, RET]
    assert list(code.constants) == [77, 0, 5, 2, 4, 3, 5]
