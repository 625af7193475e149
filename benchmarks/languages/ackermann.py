# Ackermann's function; what garden does by a tail call is a loop.
import sys


def ack(m: int, n: int) -> int:
    while m:
        n = ack(m, n - 1) if n else 1
        m -= 1
    return n + 1


sys.setrecursionlimit(10_000)
if ack(3, 9) != 4093:
    sys.exit(1)
