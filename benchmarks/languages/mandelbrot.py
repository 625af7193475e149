# Escape counts of the Mandelbrot iteration, on a slice of the real axis.
import sys


def escape(c: float, limit: int) -> int:
    z, n = 0.0, 0
    while n < limit and z * z <= 4.0:
        z = z * z + c
        n += 1
    return n


if sum(escape(i * 0.0005 - 1.5, 500) for i in range(6_000)) != 1_761_213:
    sys.exit(1)
