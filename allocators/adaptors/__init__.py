"""Adaptors: allocators that forward to a parent, and count, check, limit or share on the way."""
