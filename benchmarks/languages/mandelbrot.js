// Escape counts of the Mandelbrot iteration, on a slice of the real axis.
function escape(c, limit) {
    let z = 0.0, n = 0;
    while (n < limit && z * z <= 4.0) {
        z = z * z + c;
        n += 1;
    }
    return n;
}

let sum = 0;
for (let i = 0; i < 6000; i++) sum += escape(i * 0.0005 - 1.5, 500);
if (sum !== 1761213) process.exit(1);
