-- ARGV: 8 a user's hash (empty: everybody's), 9 how many at most.
-- Replies: time in ms, when the next one will be unheld (empty: none will), then ids, longest unheld first
local user, limit = ARGV[8], ARGV[9]
local reply = { digits(now), '' }

if user == '' then
  reply[2] = redis.call('ZRANGEBYSCORE', unheld_key, '(' .. digits(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', unheld_key, '-inf', digits(now), 'LIMIT', 0, limit)) do
    reply[#reply + 1] = id
  end
  return reply
end

local found, next = {}, nil
for _, place in ipairs(redis.call('ZRANGEBYLEX', KEYS[5], '[' .. user .. ':', '(' .. user .. ';')) do
  local id = string.sub(place, #user + 2)
  local from = tonumber(redis.call('ZSCORE', unheld_key, id) or nil)
  if from and from <= now then
    found[#found + 1] = { from, id }
  elseif from then
    next = math.min(next or from, from)
  end
end
table.sort(found, function(a, b)
  return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
end)
for n = 1, math.min(#found, tonumber(limit)) do
  reply[n + 2] = found[n][2]
end
if next then reply[2] = digits(next) end
return reply
