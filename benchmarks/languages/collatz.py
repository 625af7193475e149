# The steps that the numbers up to 30,000 take to reach 1.
import sys


def even(n: int) -> bool:
    return n % 2 == 0


def steps(n: int) -> int:
    done = 0
    while n != 1:
        n = n // 2 if even(n) else 3 * n + 1
        done += 1
    return done


if sum(steps(n) for n in range(1, 30_001)) != 2_864_311:
    sys.exit(1)
