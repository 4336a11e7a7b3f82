-- KEYS: 7 the list of a sandbox's life, 8 the list of its use. Writes nothing.
-- Replies: the lines of both
local lines = redis.call('LRANGE', KEYS[7], 0, -1)
for _, line in ipairs(redis.call('LRANGE', KEYS[8], 0, -1)) do
  lines[#lines + 1] = line
end
return lines
