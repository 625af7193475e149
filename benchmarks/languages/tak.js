// Takeuchi's function in the variant that returns y; what garden does by a tail call is a loop.
function tak(x, y, z) {
    while (x > y) {
        const a = tak(x - 1, y, z);
        const b = tak(y - 1, z, x);
        z = tak(z - 1, x, y);
        x = a;
        y = b;
    }
    return y;
}

if (tak(18, 12, 6) !== 18) process.exit(1);
