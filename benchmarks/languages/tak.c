/* Takeuchi's function in the variant that returns y. The parameters are volatile, so that it is computed when it
 * runs. */
static volatile long first = 18, second = 12, third = 6;

static long tak(long x, long y, long z) {
    return x > y ? tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) : y;
}

int main(void) {
    return tak(first, second, third) != 18;
}
