"""Composable allocators over real memory.

Allocators hand out aligned blocks of memory outside Python's heap. Each works alone or on top of another:
`MetricAllocator(Arena(PageAlloc()))`. The names below are loaded on first use, so a program that only needs pages does
not load the rest.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from allocators import reset as reset
    from allocators.adaptors.adaptor import Adaptor as Adaptor
    from allocators.adaptors.adaptor import CountingAdaptor as CountingAdaptor
    from allocators.adaptors.binning import BinningAllocator as BinningAllocator
    from allocators.adaptors.callback import CallbackAllocator as CallbackAllocator
    from allocators.adaptors.callback import RetryAllocator as RetryAllocator
    from allocators.adaptors.debug import BlockRecord as BlockRecord
    from allocators.adaptors.debug import DebugAllocator as DebugAllocator
    from allocators.adaptors.failing import FailingAllocator as FailingAllocator
    from allocators.adaptors.fallback import FallbackAllocator as FallbackAllocator
    from allocators.adaptors.limit import LimitAllocator as LimitAllocator
    from allocators.adaptors.locked import LockedAllocator as LockedAllocator
    from allocators.adaptors.metric import Counters as Counters
    from allocators.adaptors.metric import MetricAllocator as MetricAllocator
    from allocators.arena import Arena as Arena
    from allocators.arena_pool import ArenaPool as ArenaPool
    from allocators.arena_pool import TakenArena as TakenArena
    from allocators.base import BaseAllocator as BaseAllocator
    from allocators.block import Block as Block
    from allocators.block import Region as Region
    from allocators.bump import BumpAlloc as BumpAlloc
    from allocators.errors import AllocError as AllocError
    from allocators.errors import CorruptionError as CorruptionError
    from allocators.errors import DoubleFreeError as DoubleFreeError
    from allocators.errors import LayoutError as LayoutError
    from allocators.errors import LeakError as LeakError
    from allocators.errors import MisuseError as MisuseError
    from allocators.errors import SpecError as SpecError
    from allocators.layout import Layout as Layout
    from allocators.page import PageAlloc as PageAlloc
    from allocators.pool import PoolAllocator as PoolAllocator
    from allocators.protocol import Access as Access
    from allocators.protocol import Allocator as Allocator
    from allocators.protocol import Pages as Pages
    from allocators.protocol import Resettable as Resettable
    from allocators.protocol import Scoped as Scoped
    from allocators.reset import ResetPolicy as ResetPolicy
    from allocators.scope import Checkpoint as Checkpoint
    from allocators.spec import parse_spec as parse_spec
    from allocators.stack import StackAlloc as StackAlloc
    from allocators.trace.call_sites import CallSiteAllocator as CallSiteAllocator
    from allocators.trace.profiling import ProfilerRecord as ProfilerRecord
    from allocators.trace.profiling import ProfilerRecords as ProfilerRecords
    from allocators.trace.profiling import profile as profile
    from allocators.trace.tracemalloc_export import TRACEMALLOC_DOMAIN as TRACEMALLOC_DOMAIN
    from allocators.trace.tracemalloc_export import TracemallocAllocator as TracemallocAllocator
    from allocators.trace.tracing import Trace as Trace
    from allocators.trace.tracing import TracingAllocator as TracingAllocator
    from allocators.waste import Waste as Waste

    #: Whether this is the flavour compiled by mypyc.
    COMPILED: bool
else:
    _HOMES = {
        "Adaptor": "adaptors.adaptor",
        "CountingAdaptor": "adaptors.adaptor",
        "Arena": "arena",
        "ArenaPool": "arena_pool",
        "TakenArena": "arena_pool",
        "BaseAllocator": "base",
        "BinningAllocator": "adaptors.binning",
        "Block": "block",
        "Region": "block",
        "BumpAlloc": "bump",
        "CallSiteAllocator": "trace.call_sites",
        "CallbackAllocator": "adaptors.callback",
        "RetryAllocator": "adaptors.callback",
        "BlockRecord": "adaptors.debug",
        "DebugAllocator": "adaptors.debug",
        "AllocError": "errors",
        "CorruptionError": "errors",
        "DoubleFreeError": "errors",
        "LayoutError": "errors",
        "LeakError": "errors",
        "MisuseError": "errors",
        "FailingAllocator": "adaptors.failing",
        "FallbackAllocator": "adaptors.fallback",
        "Layout": "layout",
        "LimitAllocator": "adaptors.limit",
        "LockedAllocator": "adaptors.locked",
        "Counters": "adaptors.metric",
        "MetricAllocator": "adaptors.metric",
        "PageAlloc": "page",
        "PoolAllocator": "pool",
        "ProfilerRecord": "trace.profiling",
        "ProfilerRecords": "trace.profiling",
        "profile": "trace.profiling",
        "Access": "protocol",
        "Allocator": "protocol",
        "Pages": "protocol",
        "Resettable": "protocol",
        "Scoped": "protocol",
        "ResetPolicy": "reset",
        "Checkpoint": "scope",
        "SpecError": "errors",
        "parse_spec": "spec",
        "StackAlloc": "stack",
        "TRACEMALLOC_DOMAIN": "trace.tracemalloc_export",
        "TracemallocAllocator": "trace.tracemalloc_export",
        "Trace": "trace.tracing",
        "TracingAllocator": "trace.tracing",
        "Waste": "waste",
    }
    # For `from allocators import *`.
    __all__ = [*_HOMES, "COMPILED", "reset"]

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
