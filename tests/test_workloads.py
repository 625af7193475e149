"""The integer workloads give what independent Python says, at both optimisation levels."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import program
import pytest

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


EXPECTED = {
    "ackermann": [ackermann(2, 3)],
    "collatz": [sum(collatz_steps(n) for n in range(1, 1001))],
    "fib": [fibonacci(15), fibonacci(50)],
    "gcd_sum": [sum(math.gcd(i, j) for i in range(1, 61) for j in range(1, 61))],
    "primes_count": [sum(all(n % d for d in range(2, math.isqrt(n) + 1)) for n in range(2, 1000))],
    "tak": [tak(10, 6, 3)],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_workload_claims_what_python_computes(name: str) -> None:
    # The collector checks that the program prints what it claims.
    assert program.load(WORKLOADS / f"{name}.garden").output == [str(value) for value in EXPECTED[name]]


def test_every_integer_workload_is_here() -> None:
    assert {path.stem for path in WORKLOADS.glob("*.garden")} >= set(EXPECTED)
