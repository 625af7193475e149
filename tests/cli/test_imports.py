"""What a command loads: not what only other commands use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import garden
from garden.native.target import host_target

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

#: Used by options, by command lines that are not plain, or by what only writes reports.
SELDOM = {
    "allocators.adaptors.metric",
    "allocators.report",
    "allocators.spec",
    "argparse",
    "gettext",
    "ipaddress",
    "json",
    "locale",
    "pathlib",
    "shutil",
    "threading",
    "urllib.parse",
}
#: Used to make bytecode and machine code.
BACK = {"garden.bytecode.emit", "garden.bytecode.ops", "garden.ir.passes", "garden.native.cache"}
#: Used to make machine code, which the interpreter is already.
COMPILER = {
    "garden.bytecode.superinstructions",
    "garden.native.codegen.compiler",
    "garden.native.codegen.interpreter",
    "llvmlite",
}

_COMMAND = """\
import sys
# An editable install has a finder that loads some already.
before = set(sys.modules)
from garden.cli.main import main
status = main(sys.argv[1:])
print(*set(sys.modules) - before, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["check"], PRINTERS | ENGINES | SELDOM | BACK | {"ctypes"}),
        (["run", "--engine", "reference"], PRINTERS | SELDOM | COMPILER),
        pytest.param(
            ["run", "--engine", "interpreter"],
            PRINTERS | SELDOM | COMPILER,
            marks=pytest.mark.skipif(host_target() is None, reason="there is no machine code for this system"),
        ),
    ],
)
def test_a_command_loads_nothing_that_only_others_use(words: list[str], unused: set[str], tmp_path: Path) -> None:
    program = tmp_path / "program.garden"
    program.write_text('import "io"\nio.println("shown")\n')
    environment = {**os.environ, "PYTHONPATH": str(Path(garden.__file__).parent.parent)}
    # The first time, what is not installed of the interpreter is made.
    for _ in range(2):
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
    assert sorted(loaded & unused) == []
