"""The loops that `containers_benchmark` times in compiled code: each uses a container `count` times.

They are compiled in a group of their own, as the compiler stages of garden are, so a call of a container costs what it
costs there.
"""

from __future__ import annotations

from typing import Any

from allocators._mypyc import i64
from allocators.collections.hash_map import HashMap
from allocators.collections.storage import Cells
from allocators.collections.vec import Vec


def nothing(count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += index & 511
    return total


def read_cells(items: Cells, count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items[index & 511]
    return total


def read_vec(items: Vec[Any], count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items.cells[index & 511]
    return total


def read_list(items: list[int], count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items[index & 511]
    return total


def read_view(items: memoryview, count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items[index & 511]
    return total


def write_cells(items: Cells, count: i64) -> None:
    for index in range(count):
        items[index & 511] = index


def write_vec(items: Vec[Any], count: i64) -> None:
    for index in range(count):
        items.cells[index & 511] = index


def write_list(items: list[int], count: i64) -> None:
    for index in range(count):
        items[index & 511] = index


def write_view(items: memoryview, count: i64) -> None:
    for index in range(count):
        items[index & 511] = index


def append_vec(items: Vec[Any], count: i64) -> None:
    items.clear()
    for index in range(count):
        items.append_i64(index)


def append_list(items: list[int], count: i64) -> None:
    items.clear()
    for index in range(count):
        items.append(index)


def read_map(items: HashMap[Any], count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items.get_i64((index & 511) * 7919, 0)
    return total


def read_dict(items: dict[int, int], count: i64) -> i64:
    total: i64 = 0
    for index in range(count):
        total += items[(index & 511) * 7919]
    return total
