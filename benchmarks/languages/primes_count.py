# The primes below 100,000, by trial division.
import sys


def is_prime(n: int) -> bool:
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 1
    return True


found = 0
for n in range(2, 100_000):
    if is_prime(n):
        found += 1
if found != 9_592:
    sys.exit(1)
