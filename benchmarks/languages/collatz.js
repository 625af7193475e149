// The steps that the numbers up to 30,000 take to reach 1.
function even(n) {
    return n % 2 === 0;
}

function steps(n) {
    let done = 0;
    while (n !== 1) {
        n = even(n) ? n >> 1 : 3 * n + 1;
        done += 1;
    }
    return done;
}

let sum = 0;
for (let n = 1; n <= 30000; n++) sum += steps(n);
if (sum !== 2864311) process.exit(1);
