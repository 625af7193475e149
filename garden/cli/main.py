"""The `garden` command: parses the command line and runs it.

Exit codes and output streams: see `docs/how-to/run-a-program.md`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

from garden.cli.plain import PlainParser
from garden.common import ENGINES
from garden.output import OutputError, flush_stdout, write_stderr, write_stdout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    AnyParser = argparse.ArgumentParser | PlainParser

COMMANDS = ("run", "build", "check", "dump", "doc", "cache")
#: The exit code of a shell for a program that Ctrl-C ended.
_INTERRUPTED = 128 + 2

TARGETS = ("x86_64-linux", "aarch64-linux")
DUMPS = ("tokens", "ast", "types", "ir", "bytecode", "llvm", "native")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        status = _carry_out(words, own_process=arguments is None)
        flush_stdout()
        return status
    except OutputError as error:
        from garden.cli.report import output_failed

        return output_failed(error)
    except OSError as error:
        return _fail(str(error), 1)
    except MemoryError:
        return _fail("out of memory", 1)
    except KeyboardInterrupt:
        # While a program runs, Ctrl-C is a trap; this was before or after.
        return _fail("interrupted", _INTERRUPTED)


def _fail(message: str, status: int) -> int:
    from garden.cli.report import fail

    return fail(message, status)


def command() -> NoReturn:
    """The process of the command: run `main`, then exit."""
    _occupy_closed()
    status = main()
    # Lost output has been reported, or cannot be. Python would try again at exit.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    # Python would tidy up, which takes longer than a small program, and wait for a compiler that works in a thread. The
    # system takes everything back anyway.
    os._exit(status)


def _occupy_closed() -> None:
    """Keep files that are opened later from becoming a standard stream that was closed, which must still fail."""
    path_only = getattr(os, "O_PATH", None)
    if path_only is None:
        return
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Opening takes the lowest free number, which is this one.
            os.set_inheritable(os.open("/", path_only), True)


def _carry_out(words: list[str], *, own_process: bool) -> int:
    if words and words[0] not in COMMANDS and not _is_global_option(words[0]):
        # `garden FILE` is short for `garden run FILE`, with options anywhere.
        words.insert(0, "run")
    # Imported late, so that help, usage errors and documentation cost no compiler.
    if words and words[0] in ("-V", "--version"):
        write_stdout(f"{_version()}\n".encode())
        return 0
    options = _plain_options(words)
    if options is None:
        try:
            options = _parser(words[0] if words else "").parse_args(words)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 2
    if options.command == "doc":
        from garden.cli.doc import doc

        return doc(options)
    if options.command == "cache":
        from garden.cli.cache import cache

        return cache(options)
    from garden.cli import commands

    options.own_process = own_process
    handlers = {"run": commands.run, "build": commands.build, "check": commands.check, "dump": commands.dump}
    return handlers[options.command](options)


def _is_global_option(word: str) -> bool:
    return word in ("-h", "--help", "-V", "--version")


def _plain_options(words: list[str]) -> Any:
    """What a command line means, if that takes no argparse; else None."""
    if not words or words[0] not in COMMANDS:
        return None
    parser = PlainParser()
    _DESCRIPTIONS[words[0]][1](parser)
    options = parser.parse(words[1:])
    if options is not None:
        options.command = words[0]
    return options


def _parser(wanted: str) -> argparse.ArgumentParser:
    """What parses the command line. If `wanted` is a command, it knows no other: each takes its time to describe."""
    import argparse

    class Parser(argparse.ArgumentParser):
        """Writes help to standard output, errors to standard error, even if the latter is closed.

        Each option that is added is tried with a formatter; the usual one asks for the width of the terminal.
        """

        def __init__(self, **options: Any) -> None:
            super().__init__(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=80), **options)

        def format_help(self) -> str:
            self.formatter_class = argparse.HelpFormatter
            return super().format_help()

        def format_usage(self) -> str:
            self.formatter_class = argparse.HelpFormatter
            return super().format_usage()

        def print_help(self, file: object = None) -> None:
            write_stdout(self.format_help().encode())

        def error(self, message: str) -> NoReturn:
            write_stderr(f"{self.format_usage()}{self.prog}: error: {message}\n".encode(errors="backslashreplace"))
            self.exit(2)

    parser = Parser(prog="garden", description="Compiler and virtual machine for garden programs.")
    parser.add_argument("-V", "--version", action="store_true", help="show the version")
    commands = parser.add_subparsers(prog="garden", dest="command", metavar="COMMAND", required=True)
    for name in (wanted,) if wanted in COMMANDS else COMMANDS:
        text, describe = _DESCRIPTIONS[name]
        describe(commands.add_parser(name, help=text))
    return parser


def _describe_program(parser: AnyParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the program, or - for standard input")
    parser.add_argument("-O", dest="level", type=int, choices=(0, 1), default=1, help="optimisation level (default 1)")
    parser.add_argument(
        "--alloc",
        metavar="STAGE=SPEC",
        action="append",
        default=[],
        help="take a stage's memory from this allocator, such as parse='limit(8M, arena(page))'; repeatable",
    )
    parser.add_argument("--alloc-stats", action="store_true", help="print what each stage took, to standard error")


def _describe_run(run: AnyParser) -> None:
    _describe_program(run)
    run.add_argument("-B", "--backtrace", action="store_true", help="with a trap, print the active functions")
    run.add_argument(
        "--heap-limit", metavar="SIZE", default=None, help="memory of the program, such as 64M (default 1G)"
    )
    run.add_argument(
        "--stack-size",
        metavar="SIZE",
        default=None,
        help="stack, such as 1G (default 256M, but 256K for interpreter and reference)",
    )
    run.add_argument(
        "--engine", choices=ENGINES, default="auto", help="what runs the program (default auto: the fastest)"
    )
    run.add_argument(
        "--perf-map", action="store_true", help="tell `perf` the names of functions in machine code (/tmp/perf-PID.map)"
    )
    run.add_argument("--time", action="store_true", help="say how long compiling and running took")
    run.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="say which engines cannot run it, and why; with --time, what happened when",
    )


def _describe_build(build: AnyParser) -> None:
    _describe_program(build)
    build.add_argument("-o", dest="output", metavar="OUT", required=True, help="the file to write")
    build.add_argument("--target", choices=TARGETS, default=None, help="where it shall run (default: here)")
    build.add_argument(
        "--heap-limit", metavar="SIZE", default=None, help="memory of the program, such as 64M (default 1G)"
    )
    build.add_argument("--stack-size", metavar="SIZE", default=None, help="its stack, such as 1G (default 256M)")


def _describe_check(check: AnyParser) -> None:
    _describe_program(check)
    check.add_argument("--json", action="store_true", help="print them as JSON, to standard output")


def _describe_dump(dump: AnyParser) -> None:
    dump.add_argument("product", choices=DUMPS, metavar="{" + ",".join(DUMPS) + "}", help="what to print")
    _describe_program(dump)
    dump.add_argument("--pass", dest="pass_name", metavar="NAME", help="with ir: before and after one pass")
    dump.add_argument("--nodes", action="store_true", help="with types: the type of every node")
    dump.add_argument("--registers", type=int, metavar="N", help="with bytecode: use at most N registers (4 to 64)")


def _describe_doc(doc: AnyParser) -> None:
    doc.add_argument("query", metavar="QUERY", nargs="?", help="a package, such as str, or a function, such as str.len")


def _describe_cache(cache: AnyParser) -> None:
    cache.add_argument("--clear", action="store_true", help="remove it")


#: What each command is for, and what adds its options to its parser.
_DESCRIPTIONS: Final[dict[str, tuple[str, Callable[[AnyParser], None]]]] = {
    "run": ("run a program", _describe_run),
    "build": ("make an executable of a program", _describe_build),
    "check": ("report the errors in a program", _describe_check),
    "dump": ("print what a stage makes of a program", _describe_dump),
    "doc": ("show what the standard packages have", _describe_doc),
    "cache": ("show where machine code is kept, and how much", _describe_cache),
}


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"garden {version('garden-allocators')}"
    except PackageNotFoundError:
        return "garden (not installed)"
