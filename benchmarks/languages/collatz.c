/* The steps that the numbers up to 30,000 take to reach 1. The limit is volatile, so that they are counted when it
 * runs. */
static volatile long limit = 30000;

static int even(long n) {
    return n % 2 == 0;
}

static long steps(long n) {
    long done = 0;
    while (n != 1) {
        n = even(n) ? n / 2 : 3 * n + 1;
        done++;
    }
    return done;
}

int main(void) {
    long last = limit, sum = 0;
    for (long n = 1; n <= last; n++) sum += steps(n);
    return sum != 2864311;
}
