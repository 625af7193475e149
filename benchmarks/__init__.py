"""Benchmarks: each compares garden or its allocators with what one would use instead, in one run."""
