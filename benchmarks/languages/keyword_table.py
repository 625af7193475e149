# 200,000 words, built as they come, found among 500 keywords or not.
import sys

numbers = {f"kw_{i}": i for i in range(500)}


def total(last: int) -> int:
    found = 0
    for i in range(1, last + 1):
        found += numbers.get(f"kw_{i % 600}", -1)
    return found


if total(200_000) != 41_528_550:
    sys.exit(1)
