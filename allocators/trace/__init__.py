"""Tracing: records the operations of an allocator, attributes them to code, and replays them."""
