-- Ackermann's function; what garden does by a tail call is a loop.
local function ack(m, n)
    while m ~= 0 do
        if n == 0 then
            n = 1
        else
            n = ack(m, n - 1)
        end
        m = m - 1
    end
    return n + 1
end

if ack(3, 9) ~= 4093 then os.exit(1) end
