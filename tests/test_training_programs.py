"""The programs that the superinstructions are chosen on claim what independent Python says, and are no workloads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from tests.support import program

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PROGRAMS = BENCHMARKS / "training"


def queens(size: int) -> int:
    rows = range(size)
    return sum(
        len({board[row] + row for row in rows}) == len({board[row] - row for row in rows}) == size
        for board in permutations(rows)
    )


def calculator() -> int:
    value = 12 * (3 + 4 * 5) - (-7 + 812 * 2) * (9 - (4 + 1)) + 1024 * 3 - 6 * 77
    total = 0
    for _ in range(1000):
        # A remainder of garden has the sign of the dividend.
        total = int(math.fmod(total + value, 1000003))
    return total


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def edit_distance() -> int:
    words = ["rose", "tulip", "lilac", "daisy", "poppy", "pansy", "lily", "iris"]
    return sum(distance(a, b) for a in words for b in words)


def knapsack() -> int:
    weights = [12, 7, 11, 8, 9, 6, 7, 3, 5, 14, 4, 10, 13, 2, 15, 1]
    worths = [24, 13, 23, 15, 16, 11, 15, 7, 9, 30, 5, 19, 27, 3, 29, 1]
    best = [0] * 71
    for weight, worth in zip(weights, worths, strict=True):
        for room in range(70, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + worth)
    return best[70]


def lorenz() -> int:
    def slope(x: float, y: float, z: float) -> tuple[float, float, float]:
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - z * 8.0 / 3.0

    x, y, z, found, time = 1.0, 1.0, 1.0, 0, 0.005
    for _ in range(20000):
        dx, dy, dz = slope(x, y, z)
        half = time / 2.0
        dx, dy, dz = slope(x + dx * half, y + dy * half, z + dz * half)
        before = x
        x, y, z = x + dx * time, y + dy * time, z + dz * time
        found += before * x < 0.0
    return found


def calendar() -> int:
    def fridays(first: int, last: int) -> int:
        return sum(date(year, month, 13).weekday() == 4 for year in range(first, last + 1) for month in range(1, 13))

    # The calendar repeats after 400 years.
    return 40 * fridays(2000, 2399)


def queue() -> int:
    seed, now, free, waited, longest = 42, 0, 0, 0, 0
    for _ in range(60000):
        first = (seed * 1103515245 + 12345) % (1 << 31)
        seed = (first * 1103515245 + 12345) % (1 << 31)
        now += (first >> 16) % 12
        wait = max(now, free) - now
        drawn = seed >> 16
        served = 1 + drawn % 4 if wait > 40 else 2 + drawn % 7 if wait > 20 else 3 + drawn % 9
        free = now + wait + served
        waited, longest = waited + wait, max(longest, wait)
    return waited * 1000 + longest


def words() -> int:
    text = "All summer the little bees hummed happily across the apple tree, carrying sweet yellow pollen. " * 200
    found = re.findall("[a-zA-Z]+", text)
    checksum = 0
    for word in found:
        if re.search(r"(.)\1", word):
            for byte in word.encode():
                checksum = (checksum * 31 + byte) % 1000003
    return (checksum * 1000 + len(found)) * 100 + max(map(len, found))


def modular() -> int:
    return sum(all(pow(base, n - 1, n) == 1 for base in (2, 3, 5)) for n in range(7, 20000, 2))


def spheres() -> int:
    total, size = 0.0, 120
    scene = [(0.0, 0.0, 5.0, 1.0), (1.5, 0.5, 6.0, 1.2), (-1.0, -0.8, 4.0, 0.6)]
    for row in range(size):
        for column in range(size):
            x, y = (column + 0.5) / size - 0.5, 0.5 - (row + 0.5) / size
            length = math.sqrt(x * x + y * y + 1.0)
            x, y, z = x / length, y / length, 1.0 / length
            nearest, light = 1000.0, 0.0
            for sx, sy, sz, radius in scene:
                along = x * sx + y * sy + z * sz
                inside = along * along - (sx * sx + sy * sy + sz * sz) + radius * radius
                far = along - math.sqrt(inside) if inside >= 0.0 else -1.0
                if 0.0 <= far <= nearest:
                    nearest, light = far, 0.1 + max(0.0, (y * far - sy) / radius) * 0.9
            total += light
    return int(total * 1000.0)


EXPECTED: dict[str, Callable[[], int]] = {
    "calculator": calculator,
    "calendar": calendar,
    "edit_distance": edit_distance,
    "knapsack": knapsack,
    "lorenz": lorenz,
    "modular": modular,
    "queens": lambda: queens(8) * 1000 + queens(7),
    "queue": queue,
    "spheres": spheres,
    "words": words,
}


@cache
def loaded(name: str) -> program.Program:
    return program.load(PROGRAMS / f"{name}.garden")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_training_program_claims_what_python_computes(name: str) -> None:
    claimed = loaded(name).claims.value
    assert claimed is not None
    assert claimed.text == str(EXPECTED[name]())


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_training_program_does_what_it_claims(name: str, engine: str) -> None:
    loaded(name).check(engine, 1)


def test_every_training_program_is_here_and_none_is_reported() -> None:
    names = {path.stem for path in PROGRAMS.glob("*.garden")}
    assert names == set(EXPECTED)
    assert names.isdisjoint([path.stem for path in (BENCHMARKS / "languages").iterdir()])
