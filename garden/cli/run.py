"""`garden run`: which machine runs a program, and what is kept for its next run.

A program whose machine code is in the cache runs in that. Another one begins in the interpreter, unless an engine is
asked for, or the memory of the stages matters, which all stages then must have gone through. Machine code that was made
is kept twice: as an executable, which the launcher starts without Python, and as what a machine here loads.
"""

from __future__ import annotations

import gc
from time import perf_counter
from typing import TYPE_CHECKING

from garden.cli.report import fail, say, size_of
from garden.errors import Trap
from garden.machines import kept_machine, make_machine, tiered_machine
from garden.run_options import RunOptions

if TYPE_CHECKING:
    import argparse

    from garden.native.codegen.programs import NativeProgram
    from garden.native.run.tiered import TieredMachine
    from garden.pipeline import Compilation
    from garden.vm.protocol import Machine


def run_program(options: argparse.Namespace, compilation: Compilation) -> int:
    """Run a program, and return the exit code."""
    run_options = RunOptions(
        options.engine,
        heap_limit=None if options.heap_limit is None else size_of(options.heap_limit),
        stack_size=None if options.stack_size is None else size_of(options.stack_size),
        backtrace=options.backtrace,
        note=_note if options.verbose else None,
    )

    def keep(program: NativeProgram) -> None:
        if not options.backtrace:
            _keep(program, compilation)

    start = perf_counter()
    tiered: TieredMachine | None = None
    machine: Machine | None = None
    if not options.alloc and not options.alloc_stats:
        machine = kept_machine(compilation, run_options)
        if machine is None and options.own_process and options.engine == "auto" and not options.perf_map:
            machine = tiered = tiered_machine(compilation, run_options, keep)
    if machine is None:
        machine = make_machine(compilation, run_options, whole=False, made=keep if options.own_process else None)
    with machine:
        if options.perf_map:
            from garden.native.codegen.dump import write_perf_map
            from garden.native.run.machine import NativeMachine

            if isinstance(machine, NativeMachine):
                try:
                    write_perf_map(machine.symbols)
                except OSError as error:
                    return fail(f"cannot write {error.filename}: {error.strerror}", 1)
        compiled = perf_counter()
        if options.own_process:
            gc.enable()
        try:
            machine.run()
        except Trap as trap:
            if tiered is not None and trap.code != "T0007":
                tiered.finish()
            raise
        ran = perf_counter()
        if tiered is not None:
            tiered.finish()
    if options.time:
        _note(f"compiled in {(compiled - start) * 1e3:.2f} ms, ran in {(ran - compiled) * 1e3:.2f} ms")
        if tiered is not None and options.verbose:
            for seconds, event in tiered.events:
                _note(f"{seconds * 1e3:8.2f} ms: {event}")
    return 0


def _keep(program: NativeProgram, compilation: Compilation) -> None:
    """Keep an executable of a program for the launcher, if it needs no Python."""
    if program.hosts:
        return
    from garden.native.cache import Cache
    from garden.native.codegen.programs import executable_key
    from garden.native.executable.aot import link_program
    from garden.native.executable.system import host_object
    from garden.native.target import host_target

    target = host_target()
    assert target is not None
    cache = Cache()
    key = executable_key(compilation.source, target, compilation.level)
    cache.store_program(key, link_program(program, compilation.source, host_object(target, cache)))


def _note(text: str) -> None:
    say(f"garden: {text}")
