"""Strings: the hash that a Str carries, and how constant strings are laid out.

A Str is a word of length (low 32 bits) and hash (high 32 bits), then its UTF-8 bytes, padded with zeros to a word.
"""

from __future__ import annotations

from binascii import crc32

from allocators import Allocator
from allocators.collections import Vec


def hash_bytes(text: bytes) -> int:
    """32 bits of hash: the CRC-32 of the bytes, as zlib and binascii compute it.

    That is the polynomial 0x04C11DB7, bits reflected, from 0xFFFFFFFF, and inverted at the end; of no bytes it is 0. It
    is the one hash that Python has in C, it is the same in every process, and machine code needs a table of 256 words.
    """
    return crc32(text)


def append_string(strings: Vec[Allocator], text: bytes) -> int:
    """Lay out a Str at the end of a Vec of 'Q', and return the word that it starts at."""
    start = len(strings)
    strings.reserve(1 + (len(text) + 7) // 8)
    strings.append(len(text) | hash_bytes(text) << 32)
    strings.extend(memoryview(text.ljust((len(text) + 7) & -8, b"\0")).cast("Q"))
    return start
