// Sun and Jupiter in 200,000 steps of semi-implicit Euler. Astronomical units, years, masses times gravity.

// The sum of Jupiter's position and velocity after n steps.
function run(n, x1, y1, z1, vx1, vy1, vz1, x2, y2, z2, vx2, vy2, vz2) {
    const dt = 0.01;
    for (let i = 0; i < n; i++) {
        const dx = x2 - x1, dy = y2 - y1, dz = z2 - z1;
        const squared = dx * dx + dy * dy + dz * dz;
        const pull = dt / (squared * Math.sqrt(squared));
        const sun = 39.47841760435743 * pull, jupiter = 0.03769367487038949 * pull;
        vx1 += dx * jupiter;
        vy1 += dy * jupiter;
        vz1 += dz * jupiter;
        vx2 -= dx * sun;
        vy2 -= dy * sun;
        vz2 -= dz * sun;
        x1 += vx1 * dt;
        y1 += vy1 * dt;
        z1 += vz1 * dt;
        x2 += vx2 * dt;
        y2 += vy2 * dt;
        z2 += vz2 * dt;
    }
    return x2 + y2 + z2 + vx2 + vy2 + vz2;
}

const result = run(
    200000,
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    4.841431442464721, -1.1603200440274284, -0.10362204447112311,
    0.606326392995832, 2.81198684491626, -0.02521836165988763,
);
if (!(Math.abs(result + 1.968360027403725) < 0.000001)) process.exit(1);
