/* The greatest common divisors of all pairs of numbers up to 1,000. The limit is volatile, so that they are computed
 * when it runs. */
static volatile long limit = 1000;

static long gcd(long a, long b) {
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int main(void) {
    long last = limit, sum = 0;
    for (long i = 1; i <= last; i++) {
        for (long j = 1; j <= last; j++) sum += gcd(i, j);
    }
    return sum != 4449880;
}
