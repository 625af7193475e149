"""check_every_failure: runs a function once for each request it makes, and fails that request.

The method is that of Zig's `checkAllAllocationFailures`. A function that handles the failure of every request and leaks
no block handles running out of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, overload

from allocators.protocol import Allocator
from allocators.testing.errors import LeakedBlocks, NondeterministicAllocations, SwallowedFailure, summary
from allocators.testing.instrumented import Failures

T = TypeVar("T")


@overload
def check_every_failure(function: Callable[[Allocator], object], *, at_most: int | None = None) -> int: ...
@overload
def check_every_failure(
    function: Callable[[T], object], make: Callable[[Failures], T], *, at_most: int | None = None
) -> int: ...
def check_every_failure(
    function: Callable[[T], object], make: Callable[[Failures], T] | None = None, *, at_most: int | None = None
) -> int:
    """Call `function` with unlimited memory, then once for each request, refusing that one and all after it.

    Requests are allocations, grows and shrinks. Later requests are refused too, so that retrying with a smaller size
    does not help. Each refused run must end with a MemoryError and no live block. Raises `SwallowedFailure` if it
    returns normally, `NondeterministicAllocations` if it makes fewer requests than the first run, `LeakedBlocks` if any
    block is left; any other exception of `function` passes through, with a note that names the refused request.

    `function` takes an allocator. If it needs several, or an allocator on top, `make` builds its argument from
    `Failures`, whose `allocator()` returns a new source at each call; requests of all sources are counted together:

        def make(failures: Failures) -> Stages:
            return Stages(parse=failures.allocator(), lower=failures.allocator())

        check_every_failure(compile_example, make)

    Everything that `make` builds must be freed when `function` ends. `at_most` limits the number of runs, spread evenly
    over the requests. Returns the number of requests of the first run.
    """
    failures = Failures()
    function(_argument(make, failures))
    if failures.leaks:
        raise LeakedBlocks(f"without any failure, blocks are left: {summary(failures.leaks)}")
    count = failures.requests
    step = 1 if at_most is None or count <= at_most else count / at_most
    index = 0.0
    while index < count:
        _run_with_failure(function, make, int(index), count)
        index += step
    return count


def _argument(make: Callable[[Failures], T] | None, failures: Failures) -> T:
    if make is None:
        return failures.allocator()  # type: ignore[return-value]
    return make(failures)


def _run_with_failure(
    function: Callable[[T], object], make: Callable[[Failures], T] | None, index: int, count: int
) -> None:
    failures = Failures(index)
    where = f"with request {index} of {count} refused"
    try:
        function(_argument(make, failures))
    except MemoryError:
        pass
    except BaseException as error:
        error.add_note(where)
        raise
    else:
        if failures.refused:
            raise SwallowedFailure(f"{where}, the function returned normally")
        raise NondeterministicAllocations(f"{where}, the function made only {failures.requests} requests")
    if not failures.refused:
        raise NondeterministicAllocations(f"the function ran out of memory before request {index} was refused")
    if failures.leaks:
        raise LeakedBlocks(f"{where}, blocks are left: {summary(failures.leaks)}")
