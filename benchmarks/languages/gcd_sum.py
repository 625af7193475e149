# The greatest common divisors of all pairs of numbers up to 1,000.
import sys


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def all_pairs(last: int) -> int:
    total = 0
    for i in range(1, last + 1):
        for j in range(1, last + 1):
            total += gcd(i, j)
    return total


if all_pairs(1_000) != 4_449_880:
    sys.exit(1)
