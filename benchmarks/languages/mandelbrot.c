/* Escape counts of the Mandelbrot iteration, on a slice of the real axis. The parameters are volatile, so that they are
 * counted when it runs. */
static volatile long samples = 6000, limit = 500;
static volatile double step = 0.0005;

static long escape(double c, long limit) {
    double z = 0.0;
    long n = 0;
    while (n < limit && z * z <= 4.0) {
        z = z * z + c;
        n++;
    }
    return n;
}

int main(void) {
    long end = samples, most = limit, sum = 0;
    double width = step;
    for (long i = 0; i < end; i++) sum += escape(i * width - 1.5, most);
    return sum != 1761213;
}
