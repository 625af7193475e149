"""What a block costs: nanoseconds to make one and drop it again, and bytes while a thousand are live.

Everything is driven from interpreted Python, as a user would. The floor is a call that does nothing: `len` of a list.
"""

from __future__ import annotations

import mmap
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from allocators import (
    Arena,
    BinningAllocator,
    BumpAlloc,
    Layout,
    MetricAllocator,
    PageAlloc,
    PoolAllocator,
    StackAlloc,
)
from benchmarks.measure import Case, environment, interleaved, optional, print_table, pyplot, write_json

SIZES = (16, 64, 256, 1024, 4096, 65536, 1 << 20)
REPEATS = {16: 20000, 64: 20000, 256: 20000, 1024: 20000, 4096: 10000, 65536: 2000, 1 << 20: 200}
LIVE = 1000
_PAIR = "b = a.allocate(n); a.deallocate(b, n)"


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `allocators.json` and `allocators.svg` to `output`."""
    missing: list[str] = []
    numpy = optional("numpy", missing)
    cffi = optional("cffi", missing)
    pyarrow = optional("pyarrow", missing)
    times: dict[str, dict[int, float]] = {}
    for size in SIZES:
        cases = _ours(size) + _theirs(size, numpy, cffi, pyarrow)
        for name, nanoseconds in interleaved(cases, rounds=rounds, repeats=max(1, int(REPEATS[size] * scale))).items():
            times.setdefault(name, {})[size] = nanoseconds
    single = interleaved(_single_operations(numpy), rounds=rounds, repeats=max(1, int(50_000 * scale)))
    memory = {name: {size: measure(size) for size in SIZES[:5]} for name, measure in _live(numpy, pyarrow).items()}
    print("ns to make and drop a block of n bytes (ratio to bytearray)")
    rows = []
    for name, by_size in times.items():
        cells = [f"{by_size[size]:.0f} ({by_size[size] / times['bytearray(n)'][size]:.2f})" for size in SIZES]
        rows.append([name, *cells])
    print_table(["", *[str(size) for size in SIZES]], rows)
    print("\nns of single operations, 64 bytes")
    print_table(
        ["", "ns", "to bytearray(64)"],
        [[name, f"{value:.1f}", f"{value / single['bytearray(64)']:.2f}"] for name, value in single.items()],
    )
    print(f"\nbytes taken per block of n bytes while {LIVE} are live, Python objects included")
    print_table(
        ["", *[str(size) for size in SIZES[:5]]],
        [[name, *[str(by_size[size]) for size in SIZES[:5]]] for name, by_size in memory.items()],
    )
    if missing:
        print(f"\nnot installed, so not measured: pip install {' '.join(missing)}")
    if output is not None:
        data = {
            "environment": environment([numpy, cffi, pyarrow]),
            "rounds": rounds,
            "nanoseconds": {
                name: {str(size): round(value, 1) for size, value in by.items()} for name, by in times.items()
            },
            "single_operations": {name: round(value, 1) for name, value in single.items()},
            "bytes_per_live_block": {
                name: {str(size): value for size, value in by.items()} for name, by in memory.items()
            },
        }
        write_json(output / "allocators.json", data)
        _plot(output / "allocators.svg", times)


def _single_operations(numpy: Any) -> list[Case]:
    layout = Layout(64, 8)
    # Large enough that a round never needs a second chunk.
    arena = Arena(PageAlloc(), capacity=1 << 23)
    metric = MetricAllocator(Arena(PageAlloc(), capacity=1 << 20))
    stack = StackAlloc(bytearray(1 << 16))
    cases = [
        Case("len(list)", "len(x)", {"x": [1]}),
        Case("bytearray(64)", "bytearray(64)", {}),
        Case("Arena.allocate", "a.allocate(n)", {"a": arena, "n": layout}, arena.reset),
        Case("Arena allocate + deallocate", _PAIR, {"a": Arena(PageAlloc()), "n": layout}),
        Case("MetricAllocator(Arena) allocate + deallocate", _PAIR, {"a": metric, "n": layout}),
        Case("StackAlloc push + pop", "s.push(5); s.pop()", {"s": stack}),
    ]
    if numpy is not None:
        cases.insert(2, Case("numpy.empty(64)", "f(64)", {"f": numpy.empty}))
    return cases


def _rounded(by_size: Mapping[int, float]) -> dict[str, float]:
    return {str(size): round(value, 1) for size, value in by_size.items()}


def _ours(size: int) -> list[Case]:
    layout = Layout(size, 8)
    room = max(1 << 20, 4 * size)

    def pair(name: str, allocator: Any) -> Case:
        return Case(name, _PAIR, {"a": allocator, "n": layout}, getattr(allocator, "reset", None))

    return [
        pair("Arena", Arena(PageAlloc(), capacity=room)),
        pair("BumpAlloc", BumpAlloc(PageAlloc(), first_chunk=room)),
        pair("StackAlloc", StackAlloc(bytearray(room))),
        pair("MetricAllocator(Arena)", MetricAllocator(Arena(PageAlloc(), capacity=room))),
        Case("PoolAllocator", _PAIR, {"a": PoolAllocator(PageAlloc(), size), "n": layout}),
        Case("BinningAllocator", _PAIR, {"a": BinningAllocator(PageAlloc()), "n": layout}),
        Case("PageAlloc", _PAIR, {"a": PageAlloc(), "n": layout}),
    ]


def _theirs(size: int, numpy: Any, cffi: Any, pyarrow: Any) -> list[Case]:
    import ctypes

    cases = [
        Case("len(list)", "len(x)", {"x": [1]}),
        Case("bytearray(n)", "bytearray(n)", {"n": size}),
        Case("ctypes.create_string_buffer", "f(n)", {"f": ctypes.create_string_buffer, "n": size}),
        Case("mmap.mmap", "m(-1, n, flags=f).close()", {"m": mmap.mmap, "n": size, "f": 0x22}),
    ]
    if numpy is not None:
        cases.append(Case("numpy.empty", "f(n)", {"f": numpy.empty, "n": size // 8}))
    if cffi is not None:
        cases.append(Case("cffi new", "f('char[]', n)", {"f": cffi.FFI().new, "n": size}))
    if pyarrow is not None:
        cases.append(Case("pyarrow.allocate_buffer", "f(n)", {"f": pyarrow.allocate_buffer, "n": size}))
    return cases


def _live(numpy: Any, pyarrow: Any) -> dict[str, Callable[[int], int]]:
    """For each way to hold memory, a function from block size to bytes per live block."""

    def traced(make: Callable[[int], object], outside: Callable[[], int] = lambda: 0) -> Callable[[int], int]:
        def measure(size: int) -> int:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0] + outside()
            blocks = [make(size) for _ in range(LIVE)]
            after = tracemalloc.get_traced_memory()[0] + outside()
            tracemalloc.stop()
            # The list that holds the blocks is the same for all.
            return (after - before - blocks.__sizeof__()) // LIVE

        return measure

    def ours(allocator: Any, taken: Callable[[], int]) -> Callable[[int], int]:
        return traced(lambda size: allocator.allocate(Layout(size, 8)), taken)

    arena, bump, page = Arena(PageAlloc()), BumpAlloc(PageAlloc()), PageAlloc()
    ways = {
        "Arena": ours(arena, lambda: arena.used_bytes),
        "BumpAlloc": ours(bump, lambda: bump.used_bytes),
        "PageAlloc": ours(page, lambda: page.allocated_bytes),
        "bytearray(n)": traced(bytearray),
    }
    if numpy is not None:
        ways["numpy.empty"] = traced(lambda size: numpy.empty(size // 8))
    if pyarrow is not None:
        pool = pyarrow.default_memory_pool()
        ways["pyarrow.allocate_buffer"] = traced(pyarrow.allocate_buffer, pool.bytes_allocated)
    return ways


def _plot(path: Path, times: dict[str, dict[int, float]]) -> None:
    plots = pyplot()
    if plots is None:
        return
    figure, axes = plots.subplots(figsize=(8, 5))
    for name, by_size in times.items():
        ours = name[0].isupper()
        axes.plot(list(by_size), list(by_size.values()), "-o" if ours else "--", label=name, linewidth=2 if ours else 1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("block size in bytes")
    axes.set_ylabel("ns to make and drop a block")
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
