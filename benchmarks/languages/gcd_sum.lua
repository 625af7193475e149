-- The greatest common divisors of all pairs of numbers up to 1,000.
local function gcd(a, b)
    while b ~= 0 do
        a, b = b, a % b
    end
    return a
end

local last, sum = 1000, 0
for i = 1, last do
    for j = 1, last do
        sum = sum + gcd(i, j)
    end
end
if sum ~= 4449880 then os.exit(1) end
