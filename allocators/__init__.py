"""Composable allocators over real memory.

Small objects that hand out aligned blocks of memory outside Python's heap, each usable alone and stackable on any
other: `MetricAllocator(Arena(PageAlloc()))`.
"""

from allocators import arena as _arena
from allocators.arena import Arena as Arena
from allocators.base import BaseAllocator as BaseAllocator
from allocators.block import Block as Block
from allocators.block import Region as Region
from allocators.bump import BumpAlloc as BumpAlloc
from allocators.layout import Layout as Layout
from allocators.metric import Counters as Counters
from allocators.metric import MetricAllocator as MetricAllocator
from allocators.page import PageAlloc as PageAlloc
from allocators.protocol import Access as Access
from allocators.protocol import Allocator as Allocator
from allocators.protocol import AllocError as AllocError
from allocators.protocol import LayoutError as LayoutError
from allocators.protocol import MisuseError as MisuseError
from allocators.protocol import Pages as Pages
from allocators.protocol import Resettable as Resettable
from allocators.protocol import Scoped as Scoped
from allocators.scope import Checkpoint as Checkpoint
from allocators.stack import StackAlloc as StackAlloc
from allocators.waste import Waste as Waste

#: Whether this is the flavour that mypyc has compiled.
COMPILED = not str(_arena.__file__).endswith(".py")
