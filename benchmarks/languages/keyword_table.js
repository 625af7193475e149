// 200,000 words, built as they come, found among 500 keywords or not. (A Map is slower here, and a switch much slower.)
const numbers = Object.create(null);
for (let i = 0; i < 500; i++) numbers["kw_" + i] = i;

function total(last) {
    let sum = 0;
    for (let i = 1; i <= last; i++) sum += numbers["kw_" + i % 600] ?? -1;
    return sum;
}

if (total(200000) !== 41528550) process.exit(1);
