"""check_allocator: the contract as tests for any allocator.

Each test is a function of a fresh `Case`; its docstring is the promise that it checks. Every call goes through
`Checked`, so every test also checks alignment, overlap, contents and counters.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from allocators.base import as_pages
from allocators.block import Block, Region
from allocators.chain import chain
from allocators.errors import AllocError, MisuseError
from allocators.layout import MAX_SIZE, Layout
from allocators.protocol import Allocator
from allocators.testing.checked import Checked, Held
from allocators.testing.errors import ConformanceError, Interruption, summary
from allocators.testing.instrumented import Failures, Instrumented

ALIGNMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 4096)
#: Number of live blocks, in rotation, whose contents are compared after each call; every block is also compared
#: before it ends.
_SAMPLE: Final = 8
_SIZES: Final = (0, 1, 2, 3, 7, 8, 9, 16, 31, 64, 100, 255, 256, 1000, 4095, 4096, 5000)


class Case:
    """A fresh allocator for one test, with its parent if it takes one."""

    def __init__(
        self, make: Callable[..., Allocator], *, lifo: bool, over_size: int = 0, failures: Failures | None = None
    ) -> None:
        self.failures = Failures() if failures is None else failures
        self.parent: Instrumented | None = None
        if takes_parent(make):
            self.parent = self.failures.allocator(over_size=over_size)
            allocator = make(self.parent)
        else:
            allocator = make()
        if not isinstance(allocator, Allocator):
            raise ConformanceError(f"{allocator!r} does not have the six methods of an allocator")
        self.checked: Final = Checked(allocator, sample=_SAMPLE)
        #: Only the newest block may be resized or freed.
        self.lifo: Final = lifo

    def order(self, random: random.Random) -> list[Held]:
        """The live blocks in an order in which they may be freed."""
        blocks = sorted(self.checked.live.values(), key=lambda held: -held.number)
        if not self.lifo:
            random.shuffle(blocks)
        return blocks

    def pick(self, random: random.Random) -> Held | None:
        """A live block that may be resized or freed."""
        blocks = self.order(random)
        return blocks[0] if blocks else None

    def may_resize(self, held: Held) -> bool:
        """Whether a block can be resized: with `lifo`, only inside the scope where it was made."""
        return not self.lifo or held.made == len(self.checked.points)

    def finish(self) -> None:
        """Free everything and close, and check that nothing is left in the parent."""
        self.checked.free_all()
        close(self.checked.allocator)
        self.check_returned("after every block was freed and the allocator closed")

    def check_returned(self, when: str) -> None:
        parent = self.parent
        if parent is not None and parent.live_blocks:
            leaks = summary(parent.leaks)
            raise self.checked.fail(f"{when}, the parent still has {parent.live_blocks} live blocks: {leaks}")


def close(allocator: object) -> None:
    """Close an allocator if it has `close`, then its parents: not every allocator closes its parent."""
    for part in chain(allocator):
        method = getattr(part, "close", None)
        if method is not None and (part is allocator or not isinstance(part, Instrumented)):
            method()


def takes_parent(make: Callable[..., Any]) -> bool:
    """Whether a factory takes one argument, the parent."""
    required = [
        parameter
        for parameter in inspect.signature(make).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) > 1:
        raise TypeError(f"{make!r} must take a parent or nothing, not {len(required)} arguments")
    return bool(required)


def check_allocator(make: Callable[..., Allocator], *, lifo: bool = False, seed: int = 0) -> None:
    """Run the contract tests on an allocator; `ConformanceError` names the promise that it broke.

    `make` returns a fresh allocator at each call. If it takes an argument, that is an instrumented parent: the
    allocator must return every block to it exactly as it got it, and running out of memory must change nothing. `lifo`:
    the allocator requires blocks to be freed in reverse order. `seed` is that of the random walks.

    An allocator may refuse any request with `AllocError` except the first small ones, so allocators of fixed size can
    be checked too; give them some 64 KiB, or many tests will check little.
    """
    for test in CONTRACT:
        for over_size in (0, 24) if takes_parent(make) else (0,):
            case = Case(make, lifo=lifo, over_size=over_size)
            try:
                test(case, random.Random(f"{seed} {test.__name__}"))
                case.finish()
            except ConformanceError as error:
                promise = f"{error.promise}\n(while checking: {test.__doc__})"
                raise type(error)(promise, error.operations or case.checked.operations) from error
            finally:
                # Its memory must not outlive the test, whatever its state.
                with suppress(Exception):
                    close(case.checked.allocator)
    if takes_parent(make):
        _check_failures(make, lifo)


def _small_requests_are_served(case: Case, _random: random.Random) -> None:
    """A fresh allocator serves small requests."""
    for size, align in ((1, 1), (8, 8)):
        if case.checked.allocate(size, align) is None:
            raise case.checked.fail(f"a fresh allocator refuses {size} bytes aligned to {align}")


def _blocks_are_aligned_and_apart(case: Case, random: random.Random) -> None:
    """Blocks are aligned, do not overlap, and keep their contents."""
    requests = [(size, align) for size in _SIZES for align in ALIGNMENTS]
    random.shuffle(requests)
    for size, align in requests[:60]:
        case.checked.allocate(size, align)
    for held in case.order(random)[: len(case.checked.live) // 2]:
        case.checked.deallocate(held)
    for size, align in requests[60:]:
        case.checked.allocate(size, align)
    for held in case.order(random):
        case.checked.deallocate(held)


def _zeroed_blocks_are_zero(case: Case, random: random.Random) -> None:
    """allocate_zeroed returns zeros, even in memory that was used before."""
    for _round in range(3):
        for size in _SIZES:
            case.checked.allocate(size, random.choice((1, 8, 16)), zeroed=random.random() < 0.5)
        for held in case.order(random):
            case.checked.deallocate(held)


def _shrinking_keeps_the_prefix(case: Case, _random: random.Random) -> None:
    """shrink keeps the first bytes, whatever the sizes."""
    for old in (*range(13), 21, 40, 100):
        for new in range(0, old + 1, 1 if old < 13 else 7):
            held = case.checked.allocate(old, 1)
            if held is not None:
                case.checked.shrink(held, new, 1)
                case.checked.deallocate(held)


def _growing_keeps_the_prefix(case: Case, random: random.Random) -> None:
    """grow keeps the first bytes, whether it stays or moves; grow_zeroed adds zeros only."""
    for zeroed in (False, True):
        for old in (0, 1, 5, 8, 100, 4000):
            held = case.checked.allocate(old, 8)
            if held is None:
                continue
            for new in (old, old + 1, 2 * old + 3, 2 * old + 40):
                if not case.lifo and random.random() < 0.5:
                    # Now it is no longer the newest block.
                    case.checked.allocate(8, 1)
                case.checked.grow(held, new, 8, zeroed=zeroed)
    for held in case.order(random):
        case.checked.deallocate(held)


def _what_was_given_up_is_zeroed_again(case: Case, _random: random.Random) -> None:
    """grow_zeroed adds zeros even if the block was larger before."""
    for size in (40, 3000, 9000):
        held = case.checked.allocate(size, 8)
        if held is not None:
            for smaller, larger in ((size // 3, size // 2), (1, size)):
                if case.checked.shrink(held, smaller, 8):
                    case.checked.grow(held, larger, 8, zeroed=True)
            case.checked.deallocate(held)


def _alignment_can_change(case: Case, random: random.Random) -> None:
    """grow and shrink can change the alignment, up and down."""
    for old_align, new_align in ((1, 64), (64, 1), (8, 4096), (4096, 16), (1, 2), (16, 32)):
        for old, new in ((16, 32), (48, 8), (5, 5), (100, 300), (0, 10), (10, 0)):
            case.checked.allocate(1, 1)
            held = case.checked.allocate(old, old_align)
            if held is None:
                continue
            case.checked.resize(held, new, new_align, zeroed=random.random() < 0.5)
            if not case.lifo and random.random() < 0.5:
                case.checked.allocate(3, 1)
            case.checked.resize(held, old, old_align)
    for held in case.order(random):
        case.checked.deallocate(held)


def _zero_size_is_legal(case: Case, random: random.Random) -> None:
    """Blocks of size zero are aligned, independent of each other, and can grow."""
    for align in ALIGNMENTS:
        for _copy in range(3):
            case.checked.allocate(0, align, zeroed=random.random() < 0.5)
    for held in case.order(random)[::2] if not case.lifo else case.order(random)[:9]:
        case.checked.deallocate(held)
    newest = case.pick(random)
    if newest is not None:
        case.checked.resize(newest, 0, 1)
        case.checked.resize(newest, 64, 8)
    neighbour = case.checked.allocate(64, 8)
    if neighbour is not None and case.checked.shrink(neighbour, 0, 64):
        case.checked.grow(neighbour, 0, 8)
    for held in case.order(random):
        case.checked.deallocate(held)


def _huge_requests_are_refused(case: Case, random: random.Random) -> None:
    """Impossible sizes and alignments are refused and change nothing."""
    checked = case.checked
    first = checked.allocate(8, 8)
    held = checked.allocate(16, 8)
    for size in (1 << 52, 1 << 62, *(MAX_SIZE - below for below in (0, 1, 7, 8, 15, 16, 47, 48, 63, 64, 4095, 4096))):
        for align in (1, 8, 16, 4096):
            if size <= MAX_SIZE - (align - 1):
                _must_refuse(case, size, align)
                if held is not None and checked.grow(held, size, align, zeroed=random.random() < 0.5):
                    raise checked.fail(f"a block has grown to {size} bytes")
                if held is not None and checked.resize_in_place(held, size, align):
                    raise checked.fail(f"a block has been resized in place to {size} bytes")
    for align in (1 << 52, 1 << 62):
        _must_refuse(case, 8, align)
        _must_refuse(case, MAX_SIZE - (align - 1), align)
    if first is not None and checked.allocate(8, 8) is None:
        raise checked.fail("8 bytes were refused after requests that are too large")


def _must_refuse(case: Case, size: int, align: int) -> None:
    if case.checked.allocate(size, align) is not None:
        raise case.checked.fail(f"a request for {size} bytes aligned to {align} was served")


def _ended_blocks_raise(case: Case, random: random.Random) -> None:
    """Every use of an ended block raises MisuseError and changes nothing."""
    checked = case.checked
    checked.allocate(24, 8)
    for size in (1, 40, 3000):
        held = checked.allocate(size, 8)
        if held is None:
            continue
        before, layout = held.block, held.layout
        if checked.grow(held, size + 8, 8):
            checked.misuse(before, layout)
        before, layout = held.block, held.layout
        if checked.shrink(held, size, 8):
            checked.misuse(before, layout)
        before, layout = held.block, held.layout
        checked.deallocate(held)
        checked.misuse(before, layout)
    for held in case.order(random):
        checked.deallocate(held)


def _resizing_in_place_does_not_move(case: Case, random: random.Random) -> None:
    """resize_in_place, if supported, changes only the size, or returns None."""
    checked = case.checked
    for _round in range(60):
        held = case.pick(random) if random.random() < 0.6 else checked.allocate(random.randrange(200), 8)
        if held is not None:
            checked.resize_in_place(held, random.randrange(300), random.choice((1, 8, 64)))


def _owns_its_own(case: Case, _random: random.Random) -> None:
    """owns, if supported, is true for the allocator's blocks and false for others."""
    owns = getattr(case.checked.allocator, "owns", None)
    if owns is None:
        return
    foreign = Region.of(bytearray(64))
    try:
        if owns(Block(foreign.address, 64, foreign)):
            raise case.checked.fail("owns is true of a block from elsewhere")
    except MisuseError:
        # It cannot tell; the parent of an adaptor may lack `owns`.
        return
    for size in (1, 64, 5000):
        held = case.checked.allocate(size, 8)
        if held is not None and not owns(held.block):
            raise case.checked.fail(f"owns is false of {held.name}, a live block")


def _scopes_end_what_they_began(case: Case, random: random.Random) -> None:
    """restore, if supported, ends all blocks made since the checkpoint and no others."""
    checked = case.checked
    if not checked.can_scope:
        return
    for _round in range(12):
        depth = random.randrange(1, 4)
        for _level in range(depth):
            for _step in range(random.randrange(4)):
                _random_step(case, random)
            checked.checkpoint()
        for _step in range(random.randrange(8)):
            _random_step(case, random)
        checked.restore(random.randrange(len(checked.points)))
        for _step in range(random.randrange(4)):
            _random_step(case, random)
        while checked.points and random.random() < 0.5:
            checked.restore(len(checked.points) - 1)


def _scopes_tell_old_blocks_from_new(case: Case, _random: random.Random) -> None:
    """A block from before a checkpoint can be freed and resized in the scope, whatever was allocated since."""
    checked = case.checked
    if not checked.can_scope or case.lifo:
        return
    for size in (0, 8, 100):
        for resized in (None, 0, 8, 300):
            older = [checked.allocate(size, 8) for _copy in range(3)]
            checked.checkpoint()
            newer = [checked.allocate(size, 8) for _copy in range(2)]
            for held in (older[0], older[1], newer[0]):
                if held is None:
                    continue
                if resized is not None and held is not older[0]:
                    checked.resize(held, resized, 8)
                else:
                    checked.deallocate(held)
            checked.restore(0)
            checked.free_all()


def _reset_ends_everything(case: Case, random: random.Random) -> None:
    """reset, if supported, ends all blocks and leaves a usable allocator."""
    checked = case.checked
    if not checked.can_reset:
        return
    for _round in range(4):
        blocks = [checked.allocate(size, 8) for size in (0, 1, 64, 5000)]
        checked.reset()
        for held in blocks:
            if held is not None:
                checked.misuse(held.block, held.layout)
        for _step in range(10):
            _random_step(case, random)


def _refused_resets_change_nothing(case: Case, _random: random.Random) -> None:
    """reset and checkpoint, if unsupported, raise MisuseError and change nothing."""
    checked = case.checked
    for size in (1, 64, 5000):
        checked.allocate(size, 8)
    for method, works in (("reset", checked.can_reset), ("checkpoint", checked.can_scope)):
        if not works and hasattr(checked.allocator, method):
            try:
                getattr(checked.allocator, method)()
            except MisuseError:
                checked.check_all()
            else:
                raise checked.fail(f"{method} works with live blocks and not without")


def _protected_blocks_can_be_resized(case: Case, _random: random.Random) -> None:
    """Resizing a protected block returns a writable one; a block whose resize fails stays protected."""
    checked = case.checked
    try:
        page = as_pages(checked.allocator).page_size
    except MisuseError:
        return
    for size in (100, page, 2 * page + 1):
        for new_size in (size // 2, size + 10, 3 * size, MAX_SIZE - page):
            for zeroed in (False, True):
                held = checked.allocate(size, page)
                if held is None:
                    continue
                with suppress(MisuseError):
                    # The block may come from a part of the allocator without pages.
                    checked.allocator.protect(held.block, "r")
                checked.resize(held, new_size, page, zeroed=zeroed)
                checked.deallocate(held)


def _an_interruption_comes_after_the_deed(case: Case, random: random.Random) -> None:
    """reset, restore and close complete even if the parent raises while a block is freed."""
    checked, parent = case.checked, case.parent
    if parent is None:
        return
    for number in range(4):
        for size in (0, 8, 64, 3000, 30_000):
            checked.allocate(size, 8)
        if checked.can_scope:
            checked.checkpoint()
            for size in (0, 8, 64, 3000, 30_000):
                checked.allocate(size, 8)
            parent.interrupt_after = number
            checked.restore(0)
            parent.interrupt_after = None
        for _step in range(10):
            _random_step(case, random)
        if checked.can_reset:
            parent.interrupt_after = number
            checked.reset()
            parent.interrupt_after = None
            for _step in range(10):
                _random_step(case, random)
        checked.free_all()
        parent.interrupt_after = number
        with suppress(Interruption):
            close(checked.allocator)
        if parent.interrupt_after is None:
            case.check_returned("after a close that was interrupted")
        parent.interrupt_after = None


def _what_the_parent_takes_is_gone(case: Case, random: random.Random) -> None:
    """When the parent revokes its blocks, the blocks inside them end and are not reused, and close works."""
    checked, parent = case.checked, case.parent
    if parent is None:
        return
    for _step in range(20):
        _random_step(case, random)
    taken = parent.revoke()
    for held in checked.live.values():
        if not held.block.released and any(piece.overlaps(held.block) for piece in taken):
            raise checked.fail(f"the parent has revoked the memory of {held.name}, which can still be used")
    checked.live.clear()
    for size in (0, 8, 64, 5000):
        layout = Layout(size, 8)
        try:
            block = checked.allocator.allocate(layout)
        except (AllocError, MisuseError):
            # It may report that its memory is gone.
            continue
        if any(piece.overlaps(block) for piece in taken) and not block.released:
            raise checked.fail(f"{block!r} lies in memory that the parent has revoked")
        checked.allocator.deallocate(block, layout)
    try:
        close(checked.allocator)
    except Exception as error:
        raise checked.fail(f"close raised {type(error).__name__}: {error}") from error


def _random_walk(case: Case, random: random.Random) -> None:
    """All promises hold for random sequences of calls."""
    for _step in range(250):
        _random_step(case, random)


def _random_step(case: Case, random: random.Random) -> None:
    checked = case.checked
    choice = random.random()
    held = case.pick(random)
    align = 1 << random.randrange(8)
    size = random.choice((0, 1, 8, random.randrange(64), random.randrange(600)))
    if held is None or choice < 0.45:
        checked.allocate(size, align, zeroed=random.random() < 0.3)
    elif choice < 0.7 or not case.may_resize(held):
        checked.deallocate(held)
    elif choice < 0.95:
        checked.resize(held, size, align, zeroed=random.random() < 0.5)
    else:
        checked.resize_in_place(held, size, align)


def _closing_returns_everything(case: Case, random: random.Random) -> None:
    """close, which can be called twice, frees everything except, possibly, blocks that were never freed."""
    checked = case.checked
    for _step in range(40):
        _random_step(case, random)
    if not hasattr(checked.allocator, "close"):
        return
    # A debugging allocator may raise for blocks that were never freed.
    with suppress(MisuseError):
        close(checked.allocator)
    close(checked.allocator)
    parent = case.parent
    if parent is not None and not parent.closed and parent.live_blocks != len(checked.live):
        case.check_returned("after the allocator was closed with live blocks")
    if parent is not None:
        parent.close()
    checked.live.clear()


CONTRACT: Final = (
    _small_requests_are_served,
    _blocks_are_aligned_and_apart,
    _zeroed_blocks_are_zero,
    _shrinking_keeps_the_prefix,
    _growing_keeps_the_prefix,
    _what_was_given_up_is_zeroed_again,
    _alignment_can_change,
    _zero_size_is_legal,
    _huge_requests_are_refused,
    _ended_blocks_raise,
    _resizing_in_place_does_not_move,
    _owns_its_own,
    _scopes_end_what_they_began,
    _scopes_tell_old_blocks_from_new,
    _reset_ends_everything,
    _refused_resets_change_nothing,
    _protected_blocks_can_be_resized,
    _an_interruption_comes_after_the_deed,
    _what_the_parent_takes_is_gone,
    _random_walk,
    _closing_returns_everything,
)


def _check_failures(make: Callable[..., Allocator], lifo: bool) -> None:
    """Repeat one walk, each time with another request to the parent refused."""
    count = _walk_with_failure(make, lifo, None, None)
    for index in range(count):
        for times in (1, None):
            _walk_with_failure(make, lifo, index, times)


def _walk_with_failure(make: Callable[..., Allocator], lifo: bool, fail_at: int | None, times: int | None) -> int:
    """Returns the number of requests that the parent got."""
    failures = Failures(fail_at, times)
    operations: list[str] = []
    try:
        try:
            case = Case(make, lifo=lifo, failures=failures)
        except AllocError:
            if failures.leaks:
                raise ConformanceError(
                    f"making the allocator failed and left blocks: {summary(failures.leaks)}"
                ) from None
            return failures.requests
        operations = case.checked.operations
        walk = random.Random("failures")
        for _step in range(40):
            _random_step(case, walk)
            if walk.random() < 0.3:
                case.checked.allocate(walk.randrange(40_000), 64)
        failures.allow()
        case.finish()
    except ConformanceError as error:
        which = (
            "" if fail_at is None else f"request {fail_at} to the parent{' and all after it' if times is None else ''}"
        )
        promise = f"{error.promise}\n(while the parent refused {which or 'nothing'})"
        raise type(error)(promise, error.operations or operations) from error
    return failures.requests
