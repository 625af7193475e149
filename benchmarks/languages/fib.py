# Fibonacci numbers: by double recursion, and with accumulators, where they pass 32 bits.
import sys


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def fib_loop(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


if fib(30) != 832_040 or fib_loop(50) != 12_586_269_025:
    sys.exit(1)
