// The primes below 100,000, by trial division.
function isPrime(n) {
    for (let divisor = 2; divisor * divisor <= n; divisor++) {
        if (n % divisor === 0) return false;
    }
    return true;
}

let found = 0;
for (let n = 2; n < 100000; n++) {
    if (isPrime(n)) found += 1;
}
if (found !== 9592) process.exit(1);
