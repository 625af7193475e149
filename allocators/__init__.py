"""Composable allocators over real memory.

Small objects that hand out aligned blocks of memory outside Python's heap, each usable alone and stackable on any
other: `MetricAllocator(Arena(PageAlloc()))`.
"""

from allocators import arena as _arena
from allocators import reset as reset
from allocators.adaptor import Adaptor as Adaptor
from allocators.adaptor import CountingAdaptor as CountingAdaptor
from allocators.arena import Arena as Arena
from allocators.arena_pool import ArenaPool as ArenaPool
from allocators.arena_pool import TakenArena as TakenArena
from allocators.base import BaseAllocator as BaseAllocator
from allocators.binning import BinningAllocator as BinningAllocator
from allocators.block import Block as Block
from allocators.block import Region as Region
from allocators.bump import BumpAlloc as BumpAlloc
from allocators.call_sites import CallSiteAllocator as CallSiteAllocator
from allocators.callback import CallbackAllocator as CallbackAllocator
from allocators.callback import RetryAllocator as RetryAllocator
from allocators.debug import BlockRecord as BlockRecord
from allocators.debug import DebugAllocator as DebugAllocator
from allocators.failing import FailingAllocator as FailingAllocator
from allocators.fallback import FallbackAllocator as FallbackAllocator
from allocators.layout import Layout as Layout
from allocators.limit import LimitAllocator as LimitAllocator
from allocators.locked import LockedAllocator as LockedAllocator
from allocators.metric import Counters as Counters
from allocators.metric import MetricAllocator as MetricAllocator
from allocators.page import PageAlloc as PageAlloc
from allocators.pool import PoolAllocator as PoolAllocator
from allocators.profile import ProfilerRecord as ProfilerRecord
from allocators.profile import ProfilerRecords as ProfilerRecords
from allocators.profile import profile as profile
from allocators.protocol import Access as Access
from allocators.protocol import Allocator as Allocator
from allocators.protocol import AllocError as AllocError
from allocators.protocol import CorruptionError as CorruptionError
from allocators.protocol import DoubleFreeError as DoubleFreeError
from allocators.protocol import LayoutError as LayoutError
from allocators.protocol import LeakError as LeakError
from allocators.protocol import MisuseError as MisuseError
from allocators.protocol import Pages as Pages
from allocators.protocol import Resettable as Resettable
from allocators.protocol import Scoped as Scoped
from allocators.reset import ResetPolicy as ResetPolicy
from allocators.scope import Checkpoint as Checkpoint
from allocators.spec import SpecError as SpecError
from allocators.spec import parse_spec as parse_spec
from allocators.stack import StackAlloc as StackAlloc
from allocators.tracemalloc_export import TRACEMALLOC_DOMAIN as TRACEMALLOC_DOMAIN
from allocators.tracemalloc_export import TracemallocAllocator as TracemallocAllocator
from allocators.tracing import Trace as Trace
from allocators.tracing import TracingAllocator as TracingAllocator
from allocators.waste import Waste as Waste

#: Whether this is the flavour that mypyc has compiled.
COMPILED = not str(_arena.__file__).endswith(".py")
