-- The primes below 100,000, by trial division.
local function is_prime(n)
    local divisor = 2
    while divisor * divisor <= n do
        if n % divisor == 0 then return false end
        divisor = divisor + 1
    end
    return true
end

local found = 0
for n = 2, 99999 do
    if is_prime(n) then found = found + 1 end
end
if found ~= 9592 then os.exit(1) end
