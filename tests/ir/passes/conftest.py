"""The fixture of the tests of the passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from allocators import Arena, MetricAllocator, PageAlloc
from tests.support.rewriter import Rewriter


@pytest.fixture
def rewrite() -> Iterator[Rewriter]:
    """Runs a pass over IR text; all memory must be given back in the end."""
    memory = MetricAllocator(Arena(PageAlloc()))
    yield Rewriter(memory)
    assert memory.live_blocks == 0
