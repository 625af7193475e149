/* Fibonacci numbers: by double recursion, and with accumulators. The parameters are volatile, so that they are computed
 * when it runs. */
static volatile long first = 30, second = 50;

static long fib(long n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static long fib_loop(long n) {
    long a = 0, b = 1;
    for (long i = 0; i < n; i++) {
        long next = a + b;
        a = b;
        b = next;
    }
    return a;
}

int main(void) {
    return fib(first) != 832040 || fib_loop(second) != 12586269025;
}
