-- The steps that the numbers up to 30,000 take to reach 1.
local function even(n) return n % 2 == 0 end

local function steps(n)
    local done = 0
    while n ~= 1 do
        if even(n) then
            n = n / 2
        else
            n = 3 * n + 1
        end
        done = done + 1
    end
    return done
end

local sum = 0
for n = 1, 30000 do sum = sum + steps(n) end
if sum ~= 2864311 then os.exit(1) end
