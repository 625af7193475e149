"""`python -m tests.memcheck`: machine code under valgrind, on a part of the test programs.

The runtime, the interpreter and the JIT run in a Python process, with each program's heap in blocks from malloc:
valgrind then reports reads past a block, reads of uninitialised words, and uses of freed memory. An error counts if
its innermost frame outside libc is our machine code, for which valgrind knows no file; errors in Python itself are
ignored. First, machine code with a known fault shows that faults are found.

LLVM does not run under valgrind: the cache is filled first. Takes some two minutes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from allocators import CallbackAllocator, Layout, PageAlloc
from garden.errors import CompileError
from garden.native.image.load import Image
from garden.native.target import compile_text, host_target
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from tests.support.engines import run
from tests.support.packages import PACKAGES

#: Folders of test programs with machine code of interest, and how many of each are run.
FOLDERS = ("arrays", "casts", "host", "match", "operators", "options", "records", "shown", "std", "traps")
EACH = 8
ENGINES = ("interpreter", "jit")
#: Seconds that valgrind may take.
LIMIT = 900
#: Branches on a word that has never been written.
FAULT = """
define i64 @fault(ptr %block) {
  %word = load i64, ptr %block
  %known = icmp sgt i64 %word, 41
  br i1 %known, label %yes, label %no
yes:
  store volatile i64 1, ptr %block
  ret i64 1
no:
  ret i64 0
}
"""


def programs() -> list[Path]:
    """The programs that are run, in a fixed order."""
    chosen = []
    for folder in FOLDERS:
        found = sorted((Path(__file__).parent / "programs" / folder).glob("*.garden"))
        chosen.extend(found[:: max(len(found) // EACH, 1)][:EACH])
    return chosen


def run_programs() -> None:
    """Run the programs on every native engine; what they do is the concern of other tests."""
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = (ctypes.c_void_p,), None

    def allocate(layout: Layout) -> int | None:
        address: int | None = libc.malloc(layout.size)
        return address

    def free(address: int, layout: Layout) -> None:
        libc.free(address)

    for path in programs():
        for engine in ENGINES:
            with (
                CallbackAllocator(allocate, free) as heap,
                StageAllocators({"run": heap}) as allocators,
                Compilation(Source(path.name, path.read_bytes()), allocators, PACKAGES) as compilation,
            ):
                try:
                    ir = compilation.optimise()
                except CompileError:
                    continue
                run(compilation, engine, ir.checked.types.type(ir.function_result[ir.function_count - 1]), None, True)


def run_fault() -> None:
    """Run the machine code with the known fault."""
    target = host_target()
    assert target is not None
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    with PageAlloc() as pages, Image(compile_text(FAULT, target), pages, {}) as image:
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(image.address("fault"))(libc.malloc(64))


def errors(task: str, report: Path) -> list[str]:
    """Run a task of this file under valgrind; the errors in machine code, as texts."""
    valgrind = ["valgrind", "--smc-check=all-non-file", "--error-limit=no", "--quiet", "--num-callers=8"]
    command = [*valgrind, "--xml=yes", f"--xml-file={report}", sys.executable, "-m", "tests.memcheck", task]
    # Python's own allocator hands out parts of larger blocks, and valgrind would not see where those end.
    subprocess.run(command, check=True, timeout=LIMIT, env={**os.environ, "PYTHONMALLOC": "malloc"})
    found = []
    for error in ElementTree.parse(report).getroot().iter("error"):
        frames = error.findall("stack/frame")
        ours = [frame for frame in frames if not _is_of_libc(frame)][:1]
        if ours and ours[0].find("obj") is None:
            what = error.findtext("what") or error.findtext("xwhat/text") or ""
            found.append(f"{error.findtext('kind')}: {what} at {' '.join([_named(frame) for frame in frames])}")
    return found


def _is_of_libc(frame: ElementTree.Element) -> bool:
    name = Path(frame.findtext("obj") or "").name
    return name.startswith(("libc.", "libc-", "libm.", "libm-", "vgpreload"))


def _named(frame: ElementTree.Element) -> str:
    return frame.findtext("fn") or frame.findtext("ip") or "?"


def main() -> int:
    """Check everything; returns the exit code."""
    tasks = {"programs": run_programs, "fault": run_fault}
    if len(sys.argv) > 1:
        tasks[sys.argv[1]]()
        return 0
    if shutil.which("valgrind") is None or host_target() is None:
        print("memcheck: skipped, for want of valgrind or of machine code")
        return 0
    with tempfile.TemporaryDirectory(prefix="garden-memcheck-") as folder:
        os.environ["GARDEN_CACHE_DIR"] = folder
        report = Path(folder, "report.xml")
        if not errors("fault", report):
            print("memcheck: valgrind does not see a fault in machine code")
            return 1
        run_programs()
        found = errors("programs", report)
    for error in found:
        print(error)
    print(f"memcheck: {len(programs())} programs on {' and '.join(ENGINES)}, {len(found)} errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
