-- Takeuchi's function in the variant that returns y; what garden does by a tail call is a loop.
local function tak(x, y, z)
    while x > y do
        x, y, z = tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)
    end
    return y
end

if tak(18, 12, 6) ~= 18 then os.exit(1) end
