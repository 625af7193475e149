"""What a command loads: not what only other commands use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import garden

#: Used by `dump`, and by options that print figures.
PRINTERS = {
    "garden.bytecode.disassemble",
    "garden.ir.printer",
    "garden.syntax.printer",
    "garden.types.printer",
    "garden.cli.stats",
    "garden.cli.doc",
    "garden.cli.cache",
    "garden.native.codegen.dump",
    "inspect",
    "dataclasses",
}
#: Used to run a program.
ENGINES = {
    "garden.machines",
    "garden.engine",
    "garden.vm.machine",
    "garden.native.run.machine",
    "garden.native.codegen.interpreter",
    "garden.bytecode.superinstructions",
    "llvmlite",
}

_COMMAND = """\
import sys
from garden.cli.main import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["check"], PRINTERS | ENGINES),
        (["run", "--engine", "reference"], PRINTERS | {"llvmlite", "garden.native.codegen.interpreter"}),
    ],
)
def test_a_command_loads_nothing_that_only_others_use(words: list[str], unused: set[str], tmp_path: Path) -> None:
    program = tmp_path / "program.garden"
    program.write_text('import "io"\nio.println("shown")\n')
    environment = {**os.environ, "PYTHONPATH": str(Path(garden.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _COMMAND, *words, str(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout == ("shown\n" if words[0] == "run" else "")
    loaded = set(done.stderr.split())
    assert "garden.pipeline" in loaded
    assert not loaded & unused
