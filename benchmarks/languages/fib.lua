-- Fibonacci numbers: by double recursion, and with accumulators, where they pass 32 bits.
local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
end

local function fib_loop(n)
    local a, b = 0, 1
    for _ = 1, n do
        a, b = b, a + b
    end
    return a
end

if fib(30) ~= 832040 or fib_loop(50) ~= 12586269025 then os.exit(1) end
