/* The primes below 100,000, by trial division. The limit is volatile, so that they are counted when it runs. */
static volatile long limit = 100000;

static int is_prime(long n) {
    for (long divisor = 2; divisor * divisor <= n; divisor++) {
        if (n % divisor == 0) return 0;
    }
    return 1;
}

int main(void) {
    long end = limit, found = 0;
    for (long n = 2; n < end; n++) found += is_prime(n);
    return found != 9592;
}
