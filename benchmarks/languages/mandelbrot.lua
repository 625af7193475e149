-- Escape counts of the Mandelbrot iteration, on a slice of the real axis.
local function escape(c, limit)
    local z, n = 0.0, 0
    while n < limit and z * z <= 4.0 do
        z = z * z + c
        n = n + 1
    end
    return n
end

local sum = 0
for i = 0, 5999 do sum = sum + escape(i * 0.0005 - 1.5, 500) end
if sum ~= 1761213 then os.exit(1) end
