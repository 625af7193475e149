"""Switches and lookups: tables in the constant area, and chains of comparisons where tables would be sparse."""

from __future__ import annotations

from typing import Any

import pytest

from garden.bytecode import ops
from garden.bytecode.disassemble import disassemble
from garden.bytecode.ops import op_of
from garden.strings import hash_bytes
from tests.support.ir_texts import switch


@pytest.mark.parametrize("optimise", [False, True])
@pytest.mark.parametrize("subject", [-1, 0, 1, 2, 3, 4, 5, 6, 1 << 40, -(1 << 63)])
def test_a_switch_over_close_ints_is_one_instruction(bytecode: Any, subject: int, optimise: bool) -> None:
    code = bytecode(switch(["5", "1", "3"], "Int", str(subject)), optimise=optimise)
    assert [op_of(word) for word in code.words].count(ops.SWITCH) == 1
    assert bytecode.run(code) == {5: 1, 1: 2, 3: 3}.get(subject, 0)


@pytest.mark.parametrize("subject", [7, 1000000, -5000000000, 8])
def test_a_switch_over_ints_far_apart_compares(bytecode: Any, subject: int) -> None:
    code = bytecode(switch(["7", "1000000", "-5000000000"], "Int", str(subject)))
    assert ops.SWITCH not in [op_of(word) for word in code.words]
    assert bytecode.run(code) == {7: 1, 1000000: 2, -5000000000: 3}.get(subject, 0)


@pytest.mark.parametrize("subject", ["a", "bb", "a longer key than a word", "", "other"])
def test_a_switch_over_strings_counts_their_addresses(bytecode: Any, subject: str) -> None:
    keys = ["`a`", "`bb`", "`a longer key than a word`", "``"]
    code = bytecode(switch(keys, "Str", f"`{subject}`"))
    assert [op_of(word) for word in code.words].count(ops.SWITCH) == 1
    assert bytecode.run(code) == {"a": 1, "bb": 2, "a longer key than a word": 3, "": 4}.get(subject, 0)


@pytest.mark.parametrize("subject", ["first", "last", "x"])
def test_a_switch_over_strings_that_lie_far_apart_compares(bytecode: Any, subject: str) -> None:
    others = "\n".join(
        [f"%v{index}:Str = `{'text' * 20}{index}`\nSys io.println(%v{index})" for index in range(10, 40)]
    )
    text = switch(["`first`", "`last`"], "Str", f"`{subject}`").replace(
        "switch %v0", f"%v8:Str = `first`\nSys io.println(%v8)\n{others}\nswitch %v0"
    )
    code = bytecode(text)
    assert ops.SWITCH not in [op_of(word) for word in code.words]
    assert bytecode.run(code) == {"first": 1, "last": 2}.get(subject, 0)


def test_arms_that_pass_values_have_code_of_their_own(bytecode: Any) -> None:
    text = """
        // f
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                switch %v0
                    1 -> b1(%v1)
                    2 -> b1(%v0)
                    3 -> b2
                    _ -> b1(%v2)
            b1(%v3:Int):
                %v4:Int = IMul %v3, 10
                ret %v4
            b2:
                ret %v1
        }
        // entry
        fn f2() -> Int {
            b0:
                %v0:Int = SUBJECT
                %v1:Int = 7
                %v2:Int = Call f1(%v0, %v1)
                ret %v2
        }
    """.replace("switch", "%v2:Int = 9\nswitch")
    results = [bytecode.run(bytecode(text.replace("SUBJECT", str(subject)))) for subject in range(5)]
    assert results == [90, 70, 20, 7, 90]


def lookup(cases: str, kind: str, value: str, subject: str) -> str:
    return f"""
        // entry
        fn f1() -> {value} {{
            b0:
                %v0:{kind} = {subject}
                %v1:{value} = Lookup %v0 [{cases}
                ret %v1
        }}
    """


@pytest.mark.parametrize("subject", [1, 2, 4, 5, -3])
@pytest.mark.parametrize("scale", [1, 100000])
def test_a_lookup_gives_constants(bytecode: Any, subject: int, scale: int) -> None:
    cases = f"{scale} -> 10, {4 * scale} -> -20], 1234567890123"
    code = bytecode(lookup(cases, "Int", "Int", str(subject * scale)))
    assert (ops.LOOKUP in [op_of(word) for word in code.words]) == (scale == 1)
    assert bytecode.run(code) == {1: 10, 4: -20}.get(subject, 1234567890123)


def test_a_lookup_without_keys_is_its_default(bytecode: Any) -> None:
    assert bytecode.run(bytecode(lookup("], 5", "Int", "Int", "3"))) == 5


@pytest.mark.parametrize("subject", ["one", "two", "three"])
def test_keys_and_values_of_a_lookup_may_be_strings(bytecode: Any, subject: str) -> None:
    text = lookup("`one` -> `uno`, `two` -> `due`], `other`", "Str", "Str", f"`{subject}`")
    text = text.replace("ret %v1", "Sys io.println(%v1)\nret %v1")
    bytecode.run(bytecode(text))
    assert bytecode.output == {"one": b"uno\n", "two": b"due\n"}.get(subject, b"other\n")


def test_equal_strings_are_one_string_and_one_constant(bytecode: Any) -> None:
    text = """
        // entry
        fn f1() -> Int {
            b0:
                %v0:Str = `same`
                Sys io.println(%v0)
                %v1:Str = `same`
                Sys io.println(%v1)
                %v2:Bool = SEq %v0, %v1
                %v3:Int = Cast<Bool->Int> %v2
                ret %v3
        }
    """
    code = bytecode(text)
    assert len(code.constants) == 1
    assert list(code.strings) == [4 | hash_bytes(b"same") << 32, int.from_bytes(b"same", "little")]
    assert bytecode.run(code) == 1


def test_the_hash_of_a_string_is_the_crc_32(bytecode: Any) -> None:
    assert hash_bytes(b"") == 0
    assert hash_bytes(b"123456789") == 0xCBF43926


def test_strings_are_padded_to_words(bytecode: Any) -> None:
    body = "%v0:Str = `12345678`\nSys io.println(%v0)\n%v1:Str = `123456789`\nret %v1"
    text = f"// entry\nfn f1() -> Str {{\nb0:\n{body}\n}}\n"
    code = bytecode(text)
    assert len(code.strings) == 1 + 1 + 1 + 2
    assert [word & 0xFFFFFFFF for word in (code.strings[0], code.strings[2])] == [8, 9]


def test_a_table_is_listed_with_what_is_not_the_default(bytecode: Any) -> None:
    listing = disassemble(bytecode(switch(["5", "7"], "Int", "1")))
    assert "  0000:    switch 3 slots from #5, else 0007\n             #5 -> 0003\n             #7 -> 0005\n" in listing
