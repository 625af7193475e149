// Fibonacci numbers: by double recursion, and with accumulators, where they pass 32 bits.
function fib(n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function fibLoop(n) {
    let a = 0, b = 1;
    for (let i = 0; i < n; i++) [a, b] = [b, a + b];
    return a;
}

if (fib(30) !== 832040 || fibLoop(50) !== 12586269025) process.exit(1);
