"""Containers over any allocator: growable arrays, tables of columns, bytes, maps, and interned byte strings."""

from allocators.collections.byte_buffer import ByteBuffer as ByteBuffer
from allocators.collections.hash_map import HashMap as HashMap
from allocators.collections.interner import Interner as Interner
from allocators.collections.table import Table as Table
from allocators.collections.vec import Vec as Vec
