# Takeuchi's function in the variant that returns y; what garden does by a tail call is a loop.
import sys


def tak(x: int, y: int, z: int) -> int:
    while x > y:
        x, y, z = tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)
    return y


if tak(18, 12, 6) != 18:
    sys.exit(1)
