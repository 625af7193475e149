"""The warm start: run a cached program without loading the compiler, or anything else that is slow to load.

Handles the common command lines, for the engines `jit` and `auto`. `garden.cli.commands` handles all others, every
error, and programs that are not cached. The output does not tell which of the two ran a program.

Costs: a start takes as long as these imports. So no module on this path imports `typing`, `collections` or `re`, which
take longer than everything else together. The heap is loaded when a program first needs it.
"""

from __future__ import annotations

from garden.cli.become import become_kept, can_become, executable_key
from garden.cli.program_file import ReadError, read_program
from garden.cli.report import fail, guarded
from garden.errors import ImageError
from garden.native.cache import Cache
from garden.native.codegen.programs import load_program, program_key, standard_hosts
from garden.native.target import host_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from allocators import Arena, PageAlloc
    from garden.cli.program_file import ProgramFile

_ENGINES = ("auto", "jit")


class _Options:
    """The options of `garden run` that the warm start supports."""

    file = ""
    level = 1
    backtrace = False
    heap_limit: int | None = None
    stack_size: int | None = None

    def is_plain(self) -> bool:
        """Whether an executable supports all of the options."""
        return not self.backtrace and self.heap_limit is None and self.stack_size is None


def run(words: Sequence[str], *, own_process: bool = False) -> int | ProgramFile | None:
    """Run a program as `garden run` with these words does, and return the exit code.

    If the warm start cannot, return the program if it has been read, else None. In a process that may be replaced, this
    does not return if the cache has an executable.
    """
    options = _options(words)
    target = host_target()
    if options is None or target is None:
        return None
    try:
        file = read_program(options.file)
    except ReadError as error:
        return fail(str(error), 1)
    source = file.source
    if own_process and options.is_plain() and can_become():
        become_kept(Cache(), executable_key(source, target, options.level))
    key = program_key(source.text, target, level=options.level, backtrace=options.backtrace)
    program = load_program(Cache(), key)
    hosts = None if program is None else standard_hosts(program)
    if program is None or hosts is None:
        return file
    from garden.native.image.load import Image
    from garden.native.run.jit import JitMachine, externals
    from garden.run_options import RunOptions

    arenas: list[Arena[PageAlloc]] = []

    def arena() -> Arena[PageAlloc]:
        # The default allocator of the stage `run`.
        from allocators.arena import Arena
        from allocators.page import PageAlloc

        arenas.append(Arena(PageAlloc()))
        return arenas[-1]

    try:
        image = Image(program.object, None, externals())
    except ImageError:
        return file
    machine = JitMachine(
        program,
        image,
        arena,
        hosts,
        RunOptions("jit", heap_limit=options.heap_limit, stack_size=options.stack_size, backtrace=options.backtrace),
    )

    def action() -> int:
        machine.run()
        return 0

    try:
        return guarded(action, source, lambda: "run")
    finally:
        machine.close()
        for made in arenas:
            made.close()


def _options(words: Sequence[str]) -> _Options | None:
    options = _Options()
    rest = iter(words)
    for word in rest:
        if word in ("-O0", "-O1"):
            options.level = int(word[2:])
        elif word in ("-B", "--backtrace"):
            options.backtrace = True
        elif word == "--engine":
            if next(rest, "") not in _ENGINES:
                return None
        elif word == "--heap-limit" or word == "--stack-size":
            size = _size(next(rest, ""))
            if size is None:
                return None
            if word == "--heap-limit":
                options.heap_limit = size
            else:
                options.stack_size = size
        elif word.startswith("-") or options.file:
            return None
        else:
            options.file = word
    return options if options.file else None


def _size(text: str) -> int | None:
    from allocators.sizes import parse_size

    try:
        return parse_size(text)
    except ValueError:
        return None
