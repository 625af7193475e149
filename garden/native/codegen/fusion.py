"""Fusion: finds the superinstructions in code, and takes them back, in machine code.

`fuse(words, count)` gives each word the code of the best superinstruction that begins there, if one does;
`unfuse(words, count)` gives it back the opcode of the first instruction in that. Words that are fused already are read
as what they were.

There are three tables. `firsts`: for each code, the opcode that it is or begins with. `tests`: all that has to be so
for the superinstructions to match, in threes of bytes (see `superinstructions.tests_of`). Those of a superinstruction
stand after their number, its length and its code; superinstructions with the same first opcode stand in a row, the
best ones first, and after them one of no length. `places`: for each opcode, where its row is.

Costs: a comparison or two for each superinstruction that begins with the opcode of a word, some 10 ns a word.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from garden.bytecode.superinstructions import CODES, FIRST, OPCODE, OTHER, SAME, Run, Test, preference, tests_of

#: Where in a word the target of a jump stands, in bytes.
_TARGET: Final = 4


def fusion_text(runs: Sequence[Run]) -> str:
    """The LLVM text of both functions, for these superinstructions, whose codes are from `FIRST` on in this order."""
    firsts = list(range(CODES))
    tests: list[Test] = [(0, 0, 0)]
    places = [0] * CODES
    by_first: dict[int, list[tuple[Run, int]]] = {}
    for code, run in enumerate(runs, FIRST):
        firsts[code] = run[0].code
        by_first.setdefault(run[0].code, []).append((run, code))
    for first, group in by_first.items():
        places[first] = len(tests)
        for run, code in sorted(group, key=lambda pair: preference(pair[0]), reverse=True):
            needed = tests_of(run)
            tests += [(len(needed), len(run), code), *needed]
        tests.append((0, 0, 0))

    def bytes_of(numbers: Iterable[int]) -> str:
        return ", ".join([f"i8 {number}" for number in numbers])

    names = {OPCODE: "is.opcode", SAME: "is.same", OTHER: "is.other"}
    kinds = " ".join([f"i8 {kind}, label %{name}" for kind, name in names.items()])
    held = ", ".join([f"[ %number, %{name} ]" for name in (*names.values(), "is.ahead")])
    return f"""\
@firsts = internal constant [{CODES} x i8] [{bytes_of(firsts)}]
@places = internal constant [{CODES} x i16] [{", ".join([f"i16 {place}" for place in places])}]
@tests = internal constant [{3 * len(tests)} x i8] [{bytes_of([number for test in tests for number in test])}]
define internal fastcc i64 @opcode(ptr %word) {{
  %code = load i8, ptr %word
  %index = zext i8 %code to i64
  %place = getelementptr i8, ptr @firsts, i64 %index
  %first = load i8, ptr %place
  %opcode = zext i8 %first to i64
  ret i64 %opcode
}}
define hidden void @unfuse(ptr %words, i64 %count) {{
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %each
each:
  %index = phi i64 [ 0, %0 ], [ %following, %each ]
  %word = getelementptr i64, ptr %words, i64 %index
  %opcode = call fastcc i64 @opcode(ptr %word)
  %code = trunc i64 %opcode to i8
  store i8 %code, ptr %word
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, %count
  br i1 %more, label %each, label %done
done:
  ret void
}}
define hidden void @fuse(ptr %words, i64 %count) {{
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %following, %next ]
  %in = icmp ult i64 %index, %count
  br i1 %in, label %look, label %done
look:
  %word = getelementptr i64, ptr %words, i64 %index
  %left = sub i64 %count, %index
  %opcode = call fastcc i64 @opcode(ptr %word)
  %entry = getelementptr i16, ptr @places, i64 %opcode
  %place = load i16, ptr %entry
  %start = zext i16 %place to i64
  br label %run
run:
  %head = phi i64 [ %start, %look ], [ %behind, %differs ]
  %header = getelementptr [3 x i8], ptr @tests, i64 %head
  %tests.byte = load i8, ptr %header
  %tests = zext i8 %tests.byte to i64
  %length.at = getelementptr i8, ptr %header, i64 1
  %length.byte = load i8, ptr %length.at
  %length = zext i8 %length.byte to i64
  %code.at = getelementptr i8, ptr %header, i64 2
  %code = load i8, ptr %code.at
  %end = add i64 %head, %tests
  %none = icmp eq i64 %length, 0
  br i1 %none, label %next, label %room
room:
  %fits = icmp ule i64 %length, %left
  br i1 %fits, label %test, label %differs
test:
  %before = phi i64 [ %head, %room ], {held}
  %over = icmp eq i64 %before, %end
  br i1 %over, label %found, label %check
check:
  %number = add i64 %before, 1
  %test.at = getelementptr [3 x i8], ptr @tests, i64 %number
  %kind = load i8, ptr %test.at
  %x.at = getelementptr i8, ptr %test.at, i64 1
  %x.byte = load i8, ptr %x.at
  %x = zext i8 %x.byte to i64
  %y.at = getelementptr i8, ptr %test.at, i64 2
  %y.byte = load i8, ptr %y.at
  %y = zext i8 %y.byte to i64
  %x.word = getelementptr i8, ptr %word, i64 %x
  switch i8 %kind, label %is.ahead [ {kinds} ]
is.opcode:
  %x.opcode = call fastcc i64 @opcode(ptr %x.word)
  %opcode.holds = icmp eq i64 %x.opcode, %y
  br i1 %opcode.holds, label %test, label %differs
is.same:
  %y.same = getelementptr i8, ptr %word, i64 %y
  %x.register = load i8, ptr %x.word
  %y.register = load i8, ptr %y.same
  %same.holds = icmp eq i8 %x.register, %y.register
  br i1 %same.holds, label %test, label %differs
is.other:
  %y.other = getelementptr i8, ptr %word, i64 %y
  %x.written = load i8, ptr %x.word
  %y.written = load i8, ptr %y.other
  %other.holds = icmp ne i8 %x.written, %y.written
  br i1 %other.holds, label %test, label %differs
is.ahead:
  %target.at = getelementptr i8, ptr %x.word, i64 {_TARGET}
  %target = load i32, ptr %target.at
  %target.pc = sext i32 %target to i64
  %ahead.pc = add i64 %index, %y
  %ahead.holds = icmp eq i64 %target.pc, %ahead.pc
  br i1 %ahead.holds, label %test, label %differs
differs:
  %behind = add i64 %end, 1
  br label %run
found:
  store i8 %code, ptr %word
  br label %next
next:
  %following = add i64 %index, 1
  br label %each
done:
  ret void
}}
"""
