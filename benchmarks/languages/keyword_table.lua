-- 200,000 words, built as they come, found among 500 keywords or not.
local numbers = {}
for i = 0, 499 do numbers["kw_" .. i] = i end

local sum = 0
for i = 1, 200000 do
    sum = sum + (numbers["kw_" .. i % 600] or -1)
end
if sum ~= 41528550 then os.exit(1) end
