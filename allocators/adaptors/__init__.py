"""Adaptors: allocators that forward to a parent and add counting, checks, limits or locking."""
