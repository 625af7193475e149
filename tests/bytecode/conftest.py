"""From IR text to bytecode that has been verified, with all memory accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from allocators import Arena, MetricAllocator, PageAlloc
from garden.bytecode.code import Code
from garden.bytecode.disassemble import disassemble
from garden.bytecode.emit import Emitter
from garden.bytecode.ops import REGISTERS
from garden.bytecode.verifier import verify
from garden.host import Package
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.verifier import verify as verify_ir
from garden.run_options import RunOptions
from garden.std import STANDARD
from garden.vm.machine import ReferenceMachine


class Bytecode:
    """Makes code and keeps it until `close`."""

    def __init__(self) -> None:
        self.memory = MetricAllocator(Arena(PageAlloc()))
        self.scratch = MetricAllocator(Arena(PageAlloc()))
        self.output = b""
        self._irs: list[Ir[Any]] = []
        self._codes: list[Code[Any]] = []

    def parse(self, text: str, packages: Mapping[str, Package] = STANDARD) -> Ir[Any]:
        """The verified IR that a text describes."""
        ir = parse_ir(text, self.memory, packages)
        self._irs.append(ir)
        assert verify_ir(ir, self.memory) == []
        return ir

    def keep(self, ir: Ir[Any]) -> Ir[Any]:
        """The same IR, to be closed with what is around it."""
        self._irs.append(ir)
        return ir

    def emit(self, ir: Ir[Any], *, optimise: bool = True, registers: int = REGISTERS) -> Code[Any]:
        """The verified code of a program."""
        code = Emitter(self.memory, self.scratch, optimise=optimise, registers=registers).emit(ir)
        self._codes.append(code)
        assert self.scratch.live_blocks == 0
        assert verify(code, self.memory, registers=registers) == []
        return code

    def __call__(self, text: str, *, optimise: bool = True, registers: int = REGISTERS) -> Code[Any]:
        return self.emit(self.parse(text), optimise=optimise, registers=registers)

    def run(self, code: Code[Any]) -> int:
        """The word that a program gives; what it writes is in `output`."""
        written: list[bytes] = []
        machine = ReferenceMachine(code, self.memory, RunOptions(write=written.append))
        try:
            return machine.run()
        finally:
            machine.close()
            self.output = b"".join(written)

    def close(self) -> None:
        for code in self._codes:
            code.close()
        for ir in self._irs:
            close_parsed(ir)


@pytest.fixture
def bytecode() -> Iterator[Bytecode]:
    """Programs whose memory must all be given back in the end."""
    made = Bytecode()
    yield made
    made.close()
    assert made.memory.live_blocks == 0


@pytest.fixture
def listing(bytecode: Bytecode) -> Callable[..., list[str]]:
    """The instructions of function 1 of an IR text, one a line, with labels but without pcs in front and notes."""

    def lines_of(text: str, **options: Any) -> list[str]:
        sections = disassemble(bytecode(text, **options)).split("\n\n")
        function = next(section for section in sections if not section.startswith(("globals:", "0000 <start>:")))
        lines = []
        for line in function.splitlines()[1:]:
            text, _, _ = line.partition(";")
            lines.append(text.strip() if line.startswith("<") else text.split(":", 1)[1].strip())
        return lines

    return lines_of
