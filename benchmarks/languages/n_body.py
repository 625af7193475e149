# Sun and Jupiter in 200,000 steps of semi-implicit Euler. Astronomical units, years, masses times gravity.
import sys
from math import sqrt


def run(
    n: int,
    x1: float,
    y1: float,
    z1: float,
    vx1: float,
    vy1: float,
    vz1: float,
    x2: float,
    y2: float,
    z2: float,
    vx2: float,
    vy2: float,
    vz2: float,
) -> float:
    """The sum of Jupiter's position and velocity after n steps."""
    dt = 0.01
    for _ in range(n):
        dx = x2 - x1
        dy = y2 - y1
        dz = z2 - z1
        squared = dx * dx + dy * dy + dz * dz
        pull = dt / (squared * sqrt(squared))
        sun = 39.47841760435743 * pull
        jupiter = 0.03769367487038949 * pull
        vx1 += dx * jupiter
        vy1 += dy * jupiter
        vz1 += dz * jupiter
        vx2 -= dx * sun
        vy2 -= dy * sun
        vz2 -= dz * sun
        x1 += vx1 * dt
        y1 += vy1 * dt
        z1 += vz1 * dt
        x2 += vx2 * dt
        y2 += vy2 * dt
        z2 += vz2 * dt
    return x2 + y2 + z2 + vx2 + vy2 + vz2


sun_at_rest = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
jupiter_at = (4.841431442464721, -1.1603200440274284, -0.10362204447112311)
jupiter_moves = (0.606326392995832, 2.81198684491626, -0.02521836165988763)
if not abs(run(200_000, *sun_at_rest, *jupiter_at, *jupiter_moves) + 1.968360027403725) < 0.000001:
    sys.exit(1)
