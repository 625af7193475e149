"""Bytecode as text."""

from __future__ import annotations

from typing import Any

from garden.bytecode import ops
from garden.bytecode.disassemble import disassemble
from garden.bytecode.ops import encode

PROGRAM = r"""
// half
fn f1(%v0) -> Double {
    b0(%v0:Int):
        %v1:Double = Cast<Int->Double> %v0
        %v2:Double = 0.5
        %v3:Double = DMul %v1, %v2
        ret %v3
}
// pick
fn f2(%v0) -> Int {
    b0(%v0:Int):
        switch %v0
            5 -> b1
            7 -> b2
            _ -> b3
    b1:
        %v1:Int = 12345678901
        ret %v1
    b2:
        ret %v0
    b3:
        %v2:Int = Lookup %v0 [1 -> -1, 3 -> -3], 0
        ret %v2
}
// entry
fn f3() -> Int {
    b0:
        %v0:Int = 3
        %v1:Double = Call f1(%v0)
        %v2:Str = Sys str.from(%v1)
        %v3:Str = `say "\\o/"\n`
        %v4:Str = Sys str.concat(%v3, %v2)
        Sys io.print(%v4)
        %v5:Int = Call f2(%v0)
        ret %v5
}
"""

LISTING = r"""globals:
  0000:    #4602678819172646912 (0.5)
  0001:    switch 3 slots from #5, else 0010
             #5 -> 0007
             #7 -> 0009
  0008:    #12345678901
  0009:    lookup 3 slots from #1, else #0
             #1 -> #-1
             #3 -> #-3
  0016:    "say \"\\o/\"\n"

0000 <start>:
  0000:    call 0012 <entry>
  0001:    halt

0002 <half>:
  0002:    cast_to_double r0, r0            ; 5: %v1:Double = Cast<Int->Double> %v0
  0003:    load_const r1, [0000]            ; 7: %v3:Double = DMul %v1, %v2
  0004:    dmul r0, r0, r1
  0005:    ret                              ; 8: ret %v3

0006 <pick>:
  0006:    switch r0, [0001]                ; 13: switch %v0
<pick.bb_0007>:
  0007:    load_const r0, [0008]            ; 19: ret %v1
  0008:    ret
<pick.bb_0009>:
  0009:    ret                              ; 21: ret %v0
<pick.bb_0010>:
  0010:    lookup r0, r0, [0009]            ; 23: %v2:Int = Lookup %v0 [1 -> -1, 3 -> -3], 0
  0011:    ret                              ; 24: ret %v2

0012 <entry>:
  0012:    load_imm r0, #3                  ; 30: %v1:Double = Call f1(%v0)
  0013:    call 0002 <half>
  0014:    sys #1, 0 <str.from>             ; 31: %v2:Str = Sys str.from(%v1)
  0015:    mov r1, r0                       ; 33: %v4:Str = Sys str.concat(%v3, %v2)
  0016:    load_const r0, [0016]
  0017:    sys #2, 1 <str.concat>
  0018:    sys #1, 2 <io.print>             ; 34: Sys io.print(%v4)
  0019:    load_imm r0, #3                  ; 35: %v5:Int = Call f2(%v0)
  0020:    call 0006 <pick>
  0021:    ret                              ; 36: ret %v5
"""


def test_a_program_as_text(bytecode: Any) -> None:
    assert disassemble(bytecode(PROGRAM)) == LISTING


def test_every_opcode_has_a_form(bytecode: Any) -> None:
    code = bytecode("// entry\nfn f1() -> Int {\nb0:\n%v0:Int = 1\n%v1:Int = Sys math.abs(%v0)\nret %v1\n}")
    code.constants.extend([0, 0, 0, 0])
    fields = {"a": 1, "b": 2, "c": 3}
    forms = {}
    for op in ops.OPS:
        used = [number if getattr(op, name) else 0 for name, number in fields.items()]
        code.words[2] = encode(op.code, *used)
        line = disassemble(code).split("<entry>:\n")[1].splitlines()[0]
        forms[op.name] = line.split(":", 1)[1].split(";")[0].strip()
    assert list(forms) == [form.split()[0] for form in forms.values()]
    assert forms["iadd"] == "iadd r1, r2, r3"
    assert forms["store_slot"] == "store_slot r1, top"
    assert forms["jmpge_imm"] == "jmpge_imm r1, #2, 0000"
    assert forms["sys"] == "sys #1, 0 <math.abs>"
    assert forms["ret"] == "ret"
