// Ackermann's function; what garden does by a tail call is a loop.
function ack(m, n) {
    while (m !== 0) {
        n = n === 0 ? 1 : ack(m, n - 1);
        m -= 1;
    }
    return n + 1;
}

if (ack(3, 9) !== 4093) process.exit(1);
