/* Sun and Jupiter in 200,000 steps of semi-implicit Euler. Astronomical units, years, masses times gravity.
 * The number of steps is volatile, so that they are taken when it runs. */
#include <math.h>

static volatile long steps = 200000;

int main(void) {
    const double dt = 0.01;
    double x1 = 0.0, y1 = 0.0, z1 = 0.0, vx1 = 0.0, vy1 = 0.0, vz1 = 0.0;
    double x2 = 4.841431442464721, y2 = -1.1603200440274284, z2 = -0.10362204447112311;
    double vx2 = 0.606326392995832, vy2 = 2.81198684491626, vz2 = -0.02521836165988763;
    for (long n = steps; n != 0; n--) {
        double dx = x2 - x1, dy = y2 - y1, dz = z2 - z1;
        double squared = dx * dx + dy * dy + dz * dz;
        double pull = dt / (squared * sqrt(squared));
        double sun = 39.47841760435743 * pull, jupiter = 0.03769367487038949 * pull;
        vx1 += dx * jupiter;
        vy1 += dy * jupiter;
        vz1 += dz * jupiter;
        vx2 -= dx * sun;
        vy2 -= dy * sun;
        vz2 -= dz * sun;
        x1 += vx1 * dt;
        y1 += vy1 * dt;
        z1 += vz1 * dt;
        x2 += vx2 * dt;
        y2 += vy2 * dt;
        z2 += vz2 * dt;
    }
    double result = x2 + y2 + z2 + vx2 + vy2 + vz2;
    return !(fabs(result + 1.968360027403725) < 0.000001);
}
