/* Ackermann's function. The parameters are volatile, so that the result is computed when it runs. */
static volatile long first = 3, second = 9;

static long ack(long m, long n) {
    if (m == 0) return n + 1;
    if (n == 0) return ack(m - 1, 1);
    return ack(m - 1, ack(m, n - 1));
}

int main(void) {
    return ack(first, second) != 4093;
}
