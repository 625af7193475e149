"""testing and unsafe."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from garden.errors import Trap
from garden.types.types import Bool, Int, Record, Str


def test_assert_traps_unless_true(call: Any) -> None:
    assert call("testing.assert", [Bool], True) is None
    with pytest.raises(Trap, match="T0004: assertion failed"):
        call("testing.assert", [Bool], False)


def test_used_and_allocs_are_those_of_the_heap(call: Any) -> None:
    assert (call("unsafe/runtime.used", []), call("unsafe/runtime.allocs", [])) == (0, 0)
    call("str.concat", [Str, Str], "12345678", "9")
    # Three strings of a header and one or two words.
    assert (call("unsafe/runtime.used", []), call("unsafe/runtime.allocs", [])) == (16 + 16 + 24, 3)
    call("arr.range", [Int, Int], 0, 10)
    assert (call("unsafe/runtime.used", []), call("unsafe/runtime.allocs", [])) == (56 + 88, 4)


@pytest.mark.skipif(not hasattr(os, "uname"), reason="no uname")
def test_uname_is_what_the_system_says(call: Any) -> None:
    names = call("unsafe/syscall.uname", [])
    system = os.uname()
    assert names["sysname"] == system.sysname
    assert names["nodename"] == system.nodename
    assert names["release"] == system.release
    assert names["version"] == system.version
    assert names["machine"] == system.machine
    assert ("domainname" in names) == (sys.platform == "linux")


def test_uname_is_a_record_of_texts(call: Any) -> None:
    result = call.find("unsafe/syscall.uname", []).result
    assert result.name == "Record"
    assert set(result.members) == {Str}
    assert result.labels[:5] == Record(sysname=Str, nodename=Str, release=Str, version=Str, machine=Str).labels
