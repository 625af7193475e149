"""The workloads claim what independent Python says."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest

from tests.support import program

WORKLOADS = Path(__file__).parent / "programs" / "workloads"


@cache
def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def collatz_steps(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@cache
def tak(x: int, y: int, z: int) -> int:
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) if x > y else y


def keyword_number(index: int) -> int:
    return index * 37 % 101 if index < 60 else -1


def escape_count(c: float, limit: int) -> int:
    z = 0.0
    for count in range(limit):
        if z * z > 4.0:
            return count
        z = z * z + c
    return limit


def energy_of_two_bodies(steps: int) -> float:
    x1, y1, vx1, vy1, m1 = 0.0, 0.0, 0.0, -0.25, 2.0
    x2, y2, vx2, vy2, m2 = 1.5, 0.0, 0.0, 1.0, 0.5
    dt = 0.01
    for _ in range(steps):
        dx, dy = x2 - x1, y2 - y1
        squared = dx * dx + dy * dy
        force = 1.0 / (squared * math.sqrt(squared))
        vx1, vy1 = vx1 + dx * force * m2 * dt, vy1 + dy * force * m2 * dt
        vx2, vy2 = vx2 - dx * force * m1 * dt, vy2 - dy * force * m1 * dt
        x1, y1 = x1 + vx1 * dt, y1 + vy1 * dt
        x2, y2 = x2 + vx2 * dt, y2 + vy2 * dt
    dx, dy = x2 - x1, y2 - y1
    kinetic = m1 * (vx1 * vx1 + vy1 * vy1) * 0.5 + m2 * (vx2 * vx2 + vy2 * vy2) * 0.5
    return kinetic - m1 * m2 / math.sqrt(dx * dx + dy * dy)


EXPECTED: dict[str, list[int] | list[float]] = {
    "ackermann": [ackermann(2, 3)],
    "collatz": [sum(collatz_steps(n) for n in range(1, 1001))],
    "fib": [fibonacci(15), fibonacci(50)],
    "gcd_sum": [sum(math.gcd(i, j) for i in range(1, 61) for j in range(1, 61))],
    "primes_count": [sum(all(n % d for d in range(2, math.isqrt(n) + 1)) for n in range(2, 1000))],
    "keyword_table": [sum(keyword_number(i % 72) for i in range(2000))],
    "mandelbrot": [sum(escape_count(i * 0.03125 - 2.25, 60) for i in range(80))],
    "n_body": [energy_of_two_bodies(300)],
    "tak": [tak(10, 6, 3)],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_workload_claims_what_python_computes(name: str) -> None:
    # The collector checks that the program prints what it claims.
    claimed = program.load(WORKLOADS / f"{name}.garden").claims.output
    assert [claim.text for claim in claimed] == [str(value) for value in EXPECTED[name]]


def test_every_workload_is_here() -> None:
    assert {path.stem for path in WORKLOADS.glob("*.garden")} == set(EXPECTED)
