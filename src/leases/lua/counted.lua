-- ARGV: 8 where to go on (0: at the start).
-- Replies: where to go on next (0: that was all), then some of the ids that count
local found = redis.call('HSCAN', KEYS[4], ARGV[8], 'COUNT', 1000)
local reply = { found[1] }
for n = 1, #found[2], 2 do
  reply[#reply + 1] = found[2][n]
end
return reply
