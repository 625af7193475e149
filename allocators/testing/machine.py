"""AllocatorMachine: a Hypothesis state machine that calls an allocator in random order.

    def test_my_allocator() -> None:
        run_machine(MyAllocator)

or, to choose settings as for any Hypothesis state machine,

    TestMyAllocator = machine(MyAllocator).TestCase
    TestMyAllocator.settings = settings(max_examples=1000)

Hypothesis shrinks a failure to the shortest sequence of calls that breaks a promise. The model is that of `Checked`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from allocators.block import Block
from allocators.errors import MisuseError
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.testing.checked import Held
from allocators.testing.conformance import Case, close

_SIZES = st.one_of(st.integers(0, 70), st.sampled_from((0, 1, 8, 16, 4095, 4096, 4097)), st.integers(0, 20_000))
_ALIGNMENTS = st.sampled_from((1, 1, 2, 4, 8, 8, 16, 16, 32, 64, 256, 4096))
_PICKS = st.integers(0, 1 << 16)


class AllocatorMachine(RuleBasedStateMachine):
    """Subclass it and set `make`, as for `check_allocator`, or call `machine`."""

    make: ClassVar[Callable[..., Allocator]]
    #: Only the newest block may be resized or freed.
    lifo: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.case = Case(type(self).make, lifo=self.lifo)
        self.checked = self.case.checked
        self.ended: list[tuple[Block, Layout]] = []

    def _pick(self, number: int, *, resize: bool) -> Held | None:
        """A live block that may be freed or resized, if there is one."""
        blocks = sorted(self.checked.live.values(), key=lambda held: -held.number)
        if not blocks:
            return None
        held = blocks[0 if self.lifo else number % len(blocks)]
        return held if not resize or self.case.may_resize(held) else None

    # Whether a request is served can depend on addresses, which differ from run to run. So rules that need a block have
    # no precondition, and do nothing without one.

    @rule(size=_SIZES, align=_ALIGNMENTS, zeroed=st.booleans())
    def allocate(self, size: int, align: int, zeroed: bool) -> None:
        self.checked.allocate(size, align, zeroed=zeroed)

    @rule(pick=_PICKS)
    def deallocate(self, pick: int) -> None:
        held = self._pick(pick, resize=False)
        if held is not None:
            self.ended.append((held.block, held.layout))
            self.checked.deallocate(held)

    @rule(pick=_PICKS, growth=_SIZES, align=_ALIGNMENTS, zeroed=st.booleans())
    def grow(self, pick: int, growth: int, align: int, zeroed: bool) -> None:
        held = self._pick(pick, resize=True)
        if held is not None:
            before = (held.block, held.layout)
            if self.checked.grow(held, held.layout.size + growth, align, zeroed=zeroed):
                self.ended.append(before)

    @rule(pick=_PICKS, share=st.integers(0, 16), align=_ALIGNMENTS)
    def shrink(self, pick: int, share: int, align: int) -> None:
        held = self._pick(pick, resize=True)
        if held is not None:
            before = (held.block, held.layout)
            if self.checked.shrink(held, held.layout.size * share // 16, align):
                self.ended.append(before)

    @precondition(lambda self: hasattr(self.checked.allocator, "resize_in_place"))
    @rule(pick=_PICKS, size=_SIZES, align=_ALIGNMENTS)
    def resize_in_place(self, pick: int, size: int, align: int) -> None:
        held = self._pick(pick, resize=True)
        if held is not None:
            self.checked.resize_in_place(held, size, align)

    @rule(pick=_PICKS)
    def misuse(self, pick: int) -> None:
        """Use a block that has ended."""
        if self.ended:
            self.checked.misuse(*self.ended[pick % len(self.ended)])

    @precondition(lambda self: self.checked.can_reset)
    @rule()
    def reset(self) -> None:
        self.checked.reset()

    @precondition(lambda self: self.checked.can_scope and len(self.checked.points) < 4)
    @rule()
    def checkpoint(self) -> None:
        self.checked.checkpoint()

    @precondition(lambda self: self.checked.points)
    @rule(pick=_PICKS)
    def restore(self, pick: int) -> None:
        self.checked.restore(pick % len(self.checked.points))

    @precondition(lambda self: self.case.parent is not None)
    @rule(times=st.sampled_from((1, 2, 3, 4, None)), after=st.integers(0, 3))
    def refuse(self, times: int | None, after: int) -> None:
        """Make the parent refuse some of the next requests."""
        self.case.failures.refuse(times, after=after)

    @precondition(lambda self: self.case.parent is not None)
    @rule()
    def allow(self) -> None:
        """Make the parent serve all requests again."""
        self.case.failures.allow()

    def teardown(self) -> None:
        self.case.failures.allow()
        try:
            # After a failure the model is invalid, and its findings would hide the original error.
            if sys.exc_info()[1] is None:
                self.case.finish()
        finally:
            with suppress(MisuseError):
                close(self.checked.allocator)


def machine(make: Callable[..., Allocator], *, lifo: bool = False) -> type[AllocatorMachine]:
    """The state machine for one allocator; `make` and `lifo` as for `check_allocator`."""
    return type("AllocatorMachine", (AllocatorMachine,), {"make": staticmethod(make), "lifo": lifo})


def run_machine(
    make: Callable[..., Allocator], *, lifo: bool = False, settings: hypothesis.settings | None = None
) -> None:
    """Run the state machine for one allocator. `ConformanceError` with the shortest failing sequence of calls.

    `settings` are Hypothesis settings, such as `settings(max_examples=1000)`; examples have no deadline.
    """
    run_state_machine_as_test(
        machine(make, lifo=lifo),
        settings=hypothesis.settings(
            settings or hypothesis.settings(), deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
        ),
    )
