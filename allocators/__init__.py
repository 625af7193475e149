"""Composable allocators over real memory.

Small objects that hand out aligned blocks of memory outside Python's heap, each usable alone and stackable on any
other: `MetricAllocator(Arena(PageAlloc()))`. The names below are loaded when they are first used, so that a program
which wants pages does not wait for all the rest.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from allocators.errors import AllocError as AllocError
    from allocators.errors import CorruptionError as CorruptionError
    from allocators.errors import DoubleFreeError as DoubleFreeError
    from allocators.errors import LayoutError as LayoutError
    from allocators.errors import LeakError as LeakError
    from allocators.errors import MisuseError as MisuseError
    from allocators.failing import FailingAllocator as FailingAllocator
    from allocators.fallback import FallbackAllocator as FallbackAllocator
    from allocators.layout import Layout as Layout
    from allocators.limit import LimitAllocator as LimitAllocator
    from allocators.locked import LockedAllocator as LockedAllocator
    from allocators.metric import Counters as Counters
    from allocators.metric import MetricAllocator as MetricAllocator
    from allocators.page import PageAlloc as PageAlloc
    from allocators.pool import PoolAllocator as PoolAllocator
    from allocators.profiling import ProfilerRecord as ProfilerRecord
    from allocators.profiling import ProfilerRecords as ProfilerRecords
    from allocators.profiling import profile as profile
    from allocators.protocol import Access as Access
    from allocators.protocol import Allocator as Allocator
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
    COMPILED: bool
else:
    _HOMES = {
        "Adaptor": "adaptor",
        "CountingAdaptor": "adaptor",
        "Arena": "arena",
        "ArenaPool": "arena_pool",
        "TakenArena": "arena_pool",
        "BaseAllocator": "base",
        "BinningAllocator": "binning",
        "Block": "block",
        "Region": "block",
        "BumpAlloc": "bump",
        "CallSiteAllocator": "call_sites",
        "CallbackAllocator": "callback",
        "RetryAllocator": "callback",
        "BlockRecord": "debug",
        "DebugAllocator": "debug",
        "AllocError": "errors",
        "CorruptionError": "errors",
        "DoubleFreeError": "errors",
        "LayoutError": "errors",
        "LeakError": "errors",
        "MisuseError": "errors",
        "FailingAllocator": "failing",
        "FallbackAllocator": "fallback",
        "Layout": "layout",
        "LimitAllocator": "limit",
        "LockedAllocator": "locked",
        "Counters": "metric",
        "MetricAllocator": "metric",
        "PageAlloc": "page",
        "PoolAllocator": "pool",
        "ProfilerRecord": "profiling",
        "ProfilerRecords": "profiling",
        "profile": "profiling",
        "Access": "protocol",
        "Allocator": "protocol",
        "Pages": "protocol",
        "Resettable": "protocol",
        "Scoped": "protocol",
        "ResetPolicy": "reset",
        "Checkpoint": "scope",
        "SpecError": "spec",
        "parse_spec": "spec",
        "StackAlloc": "stack",
        "TRACEMALLOC_DOMAIN": "tracemalloc_export",
        "TracemallocAllocator": "tracemalloc_export",
        "Trace": "tracing",
        "TracingAllocator": "tracing",
        "Waste": "waste",
    }
    # For `from allocators import *`.
    __all__ = [*_HOMES, "COMPILED"]

    def __getattr__(name):
        from importlib import import_module

        if name == "reset":
            return import_module("allocators.reset")
        if name == "COMPILED":
            value = not str(import_module("allocators.block").__file__).endswith(".py")
        elif name in _HOMES:
            value = getattr(import_module(f"allocators.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module 'allocators' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_HOMES, "COMPILED", "reset"} - {"TYPE_CHECKING"})
