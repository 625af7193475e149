// The greatest common divisors of all pairs of numbers up to 1,000.
function gcd(a, b) {
    while (b !== 0) {
        const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

function all(last) {
    let sum = 0;
    for (let i = 1; i <= last; i++) {
        for (let j = 1; j <= last; j++) sum += gcd(i, j);
    }
    return sum;
}

if (all(1000) !== 4449880) process.exit(1);
