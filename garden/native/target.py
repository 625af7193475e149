"""Target: compiles LLVM text to an object file for one of the supported machines.

An object depends only on the text, the target and LLVM: code is generated for the baseline of the target, not for the
processor at hand, so that cached code runs on every processor of the target.

llvmlite is imported only when an object is compiled.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine

#: The supported targets.
X86_64: Final = "x86_64-linux"
AARCH64: Final = "aarch64-linux"

_TRIPLES: Final = {X86_64: "x86_64-unknown-linux-gnu", AARCH64: "aarch64-unknown-linux-gnu"}
_PROCESSORS: Final = {X86_64: "x86-64", AARCH64: "generic"}
#: Name of the stack pointer.
STACK_POINTER: Final = {X86_64: "rsp", AARCH64: "sp"}


def host_target() -> str | None:
    """The target of this process; None if it is not supported."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return None
    target = f"{os.uname().machine}-linux"
    return target if target in _TRIPLES else None


def _machine(target: str, level: int) -> TargetMachine:
    try:
        from llvmlite import binding
    except OSError as error:
        # It is installed, and there is no room for it in the address space, say.
        raise ImportError(str(error)) from error

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    # The code model makes all references relative, and lets the whole image lie anywhere.
    return binding.Target.from_triple(_TRIPLES[target]).create_target_machine(
        cpu=_PROCESSORS[target], opt=level, reloc="pic", codemodel="small"
    )


def compile_text(text: str, target: str, *, level: int = 2) -> bytes:
    """The ELF object of a module of LLVM text, optimised at a level from 0 to 3.

    Raises RuntimeError if the text is invalid, ImportError if llvmlite is not installed or cannot be loaded.
    """
    machine = _machine(target, level)
    module = _optimised(text, target, machine, level)
    return bytes(machine.emit_object(module))


def assembly_of(text: str, target: str, *, level: int = 2) -> str:
    """The assembly of the object that `compile_text` makes."""
    machine = _machine(target, level)
    return str(machine.emit_assembly(_optimised(text, target, machine, level)))


def _optimised(text: str, target: str, machine: TargetMachine, level: int) -> Any:
    from llvmlite import binding

    module = binding.parse_assembly(text)
    module.triple = _TRIPLES[target]
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=level)
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return module
