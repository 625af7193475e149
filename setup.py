"""Compiles the hot modules with mypyc where a C compiler is present; everything else is in pyproject.toml.

`GARDEN_PURE=1` leaves them in Python. So does an editable install, whose modules must follow the source.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup

# One extension module a group, compiled side by side.
GROUPS = {
    "allocators": ("allocators",),
    "garden_front": ("garden", "garden/syntax", "garden/types"),
    "garden_ir": ("garden/ir",),
    "garden_back": ("garden/bytecode", "garden/vm"),
}

# What must stay in Python, and why.
UNCOMPILED = {
    "allocators/_mypyc.py",  # stand-ins for what mypyc provides
    "allocators/errors.py",  # exceptions
    "allocators/protocol.py",  # runtime-checkable protocols
    "garden/bindings.py",  # inspects annotations, subclasses a native class
    "garden/engine.py",  # its signatures are documentation
    "garden/errors.py",  # exceptions
    "garden/native/run/interpreter_machine.py",  # its base class is not
    "garden/vm/interrupts.py",  # entering interpreted code is what delivers Ctrl-C
}
UNCOMPILED_NAMES = {
    "__init__.py",  # re-exports, nothing to gain
    "__main__.py",  # must run as a script
}
UNCOMPILED_PACKAGES = {
    "allocators/testing",  # Hypothesis inspects the functions that it drives
    "garden/std",  # their docstrings are their documentation
}
# What every warm start of the `garden` command loads, and so is small: groups of compiled modules take longer to load.
WARM = {
    "allocators/mapping.py",
    "allocators/sizes.py",
    "garden/cli",
    "garden/common.py",
    "garden/native/cache.py",
    "garden/native/context.py",
    "garden/native/fingerprint.py",
    "garden/native/image",
    "garden/native/run/jit.py",
    "garden/native/run/machine.py",
    "garden/native/codegen/programs.py",
    "garden/native/target.py",
    "garden/output.py",
    "garden/source.py",
}
# What is not worth the time that compiling takes: debugging aids, dumps and what reads them.
COLD = {
    "allocators/arena_pool.py",
    "allocators/trace/call_sites.py",
    "allocators/trace/call_stack.py",
    "allocators/adaptors/callback.py",
    "allocators/chain.py",
    "allocators/fork.py",
    "allocators/adaptors/debug.py",
    "allocators/adaptors/failing.py",
    "allocators/adaptors/locked.py",
    "allocators/trace/profiling.py",
    "allocators/trace/records.py",
    "allocators/trace/replay.py",
    "allocators/report",
    "allocators/reset.py",
    "allocators/spec.py",
    "allocators/trace/format.py",
    "allocators/trace/tracemalloc_export.py",
    "allocators/trace/tracing.py",
    "allocators/waste.py",
    "garden/bytecode/assembler.py",
    "garden/bytecode/disassemble.py",
    "garden/bytecode/superinstructions.py",
    "garden/bytecode/verifier.py",
    "garden/diagnostics.py",
    "garden/ir/parser.py",
    "garden/ir/printer.py",
    "garden/ir/verifier.py",
    "garden/native/executable/aot.py",
    "garden/native/codegen/compiler.py",
    "garden/native/codegen/dump.py",
    "garden/native/codegen/entry.py",
    "garden/native/codegen/fusion.py",
    "garden/native/codegen/hosts.py",
    "garden/native/codegen/interpreter.py",
    "garden/native/codegen/intrinsics.py",
    "garden/native/codegen/module.py",
    "garden/native/codegen/runtime.py",
    "garden/native/executable/system.py",
    "garden/pipeline.py",
    "garden/syntax/printer.py",
    "garden/syntax/unparser.py",
    "garden/types/printer.py",
    "garden/types/report.py",
    "allocators/spelling.py",
    "garden/types/unknown.py",
}


def modules(folders: tuple[str, ...]) -> list[str]:
    """The modules to compile in some folders and the folders below that are no group's own, in a fixed order."""
    own = {folder for group in GROUPS.values() for folder in group}
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            parents = {parent.as_posix() for parent in path.parents}
            nearest = max(own & parents, key=len)
            places = {path.as_posix(), *parents}
            left_out = path.name in UNCOMPILED_NAMES or places & (UNCOMPILED | UNCOMPILED_PACKAGES | WARM | COLD)
            if nearest == folder and not left_out:
                found.append(path.as_posix())
    return found


def has_compiler() -> bool:
    """Whether there is a C compiler to build extensions with."""
    if sys.platform == "win32":
        return True
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(command.split()[0]) is not None


def extensions() -> list[Extension]:
    """The compiled groups, or nothing where the pure flavour is wanted or all that can be had."""
    if os.environ.get("GARDEN_PURE") == "1" or "editable_wheel" in sys.argv:
        return []
    if not has_compiler():
        print("garden-allocators: no C compiler found, so this is the pure Python flavour", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    groups = [(modules(folders), name) for name, folders in GROUPS.items()]
    paths = [path for group, _ in groups for path in group]
    # A cache of its own: mypyc trips over what an earlier build of other sources has left.
    cache = tempfile.mkdtemp(prefix="garden-mypyc-")
    try:
        compiled = mypycify([f"--cache-dir={cache}", *paths], separate=groups, opt_level="1", debug_level="0")
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    # A call of an allocator takes nanoseconds, so it is worth the time that this takes.
    for extension in compiled:
        if extension.name.startswith("allocators"):
            extension.extra_compile_args = ["-O2" if word == "-O1" else word for word in extension.extra_compile_args]
    return compiled


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
