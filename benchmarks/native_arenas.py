"""Two arenas in machine code: cursor and start kept in the arena, and kept in the footer of its chunk.

Both bump down, as oxc's does, and both loops do the same work: they allocate blocks of 64 bytes with alignment 8 until
the chunk is empty, write a word into each, and start again. What differs is where cursor and start are found:

    cached    arena: cursor, start
    footer    arena: address of the footer; footer: cursor, start

A compiler that knows nothing must read both again after each write into a block, which might have been to them. One
that knows that nothing else refers to the arena (as of a `&mut Arena` in Rust) may keep its words in registers, but not
what they point to. Both are measured.
"""

from __future__ import annotations

import ctypes
from typing import Final

from allocators import Layout, PageAlloc
from garden.native.image.load import Image
from garden.native.target import assembly_of, compile_text, host_target

SIZE: Final = 64
#: Blocks in the chunk: with what is written into them it fits the first cache.
BLOCKS: Final = 256
KINDS: Final = ("cached", "footer")
#: What a compiler may know of the pointer to the arena, as LLVM says it.
KNOWLEDGE: Final = {"aliased": "", "alone": " noalias"}

_FUNCTION: Final = """
define hidden void @fill_{kind}_{known}(ptr{attribute} %arena, i64 %times, i64 %top) {{
entry:
  br label %again
again:
  %time = phi i64 [ 0, %entry ], [ %next, %full ]
  {find}
  store i64 %top, ptr %cursor
  br label %allocate
allocate:
  {find_again}
  %old = load i64, ptr %cursor.now
  %start = load i64, ptr %start.now
  %room = sub i64 %old, %start
  %fits = icmp uge i64 %room, {size}
  br i1 %fits, label %take, label %full
take:
  %lower = sub i64 %old, {size}
  %aligned = and i64 %lower, -8
  store i64 %aligned, ptr %cursor.now
  %block = inttoptr i64 %aligned to ptr
  store i64 %time, ptr %block
  br label %allocate
full:
  %next = add i64 %time, 1
  %done = icmp eq i64 %next, %times
  br i1 %done, label %end, label %again
end:
  ret void
}}
"""
_FIND: Final = {
    "cached": "%cursor = getelementptr i8, ptr %arena, i64 0",
    "footer": "%footer = load ptr, ptr %arena\n  %cursor = getelementptr i8, ptr %footer, i64 0",
}
_FIND_AGAIN: Final = {
    "cached": "%cursor.now = getelementptr i8, ptr %arena, i64 0\n  %start.now = getelementptr i8, ptr %arena, i64 8",
    "footer": "%footer.now = load ptr, ptr %arena\n  %cursor.now = getelementptr i8, ptr %footer.now, i64 0\n"
    "  %start.now = getelementptr i8, ptr %footer.now, i64 8",
}


def module_text() -> str:
    """The LLVM text of the loops."""
    return "".join(
        [
            _FUNCTION.format(
                kind=kind, known=known, attribute=attribute, size=SIZE, find=_FIND[kind], find_again=_FIND_AGAIN[kind]
            )
            for known, attribute in KNOWLEDGE.items()
            for kind in KINDS
        ]
    )


class NativeArenas:
    """Both arenas over one chunk, ready to be filled. None of it works where there is no machine code."""

    def __init__(self) -> None:
        target = host_target()
        if target is None:
            raise OSError("there is no machine code for this system")
        text = module_text()
        self.pages: Final = PageAlloc()
        self.assembly: Final = assembly_of(text, target)
        self._image: Final = Image(compile_text(text, target), self.pages, {})
        chunk = self.pages.allocate(Layout(SIZE * BLOCKS, 4096))
        self._top: Final = chunk.address + SIZE * BLOCKS
        self._cached: Final = (ctypes.c_int64 * 2)(0, chunk.address)
        self._in_footer: Final = (ctypes.c_int64 * 2)(0, chunk.address)
        self._footer: Final = (ctypes.c_int64 * 1)(ctypes.addressof(self._in_footer))

    def fill(self, kind: str, known: str, times: int) -> None:
        """Fill the chunk `times` times."""
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        arena = self._cached if kind == "cached" else self._footer
        function(self._image.address(f"fill_{kind}_{known}"))(ctypes.addressof(arena), times, self._top)

    def loop(self, kind: str, known: str) -> str:
        """The assembly of one loop, without what does not become code."""
        lines = self.assembly.split(f"fill_{kind}_{known}:\n", 1)[1].split(".Lfunc_end", 1)[0].splitlines()
        return "\n".join([line for line in lines if not line.lstrip().startswith((".cfi", ".p2align"))])

    def close(self) -> None:
        """Give all memory back."""
        self._image.close()
        self.pages.close()
