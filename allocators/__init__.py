"""Composable allocators over real memory."""

from allocators.base import BaseAllocator as BaseAllocator
from allocators.block import Block as Block
from allocators.block import Region as Region
from allocators.layout import Layout as Layout
from allocators.page import PageAlloc as PageAlloc
from allocators.protocol import Access as Access
from allocators.protocol import Allocator as Allocator
from allocators.protocol import AllocError as AllocError
from allocators.protocol import LayoutError as LayoutError
from allocators.protocol import MisuseError as MisuseError
from allocators.protocol import Pages as Pages
