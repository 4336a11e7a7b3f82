-- KEYS: from 7 on the records. Writes nothing.
-- Replies: time in ms, the present life (empty: there is none), then for each record its fields, or 0 for none
local replies = { digits(now), present_life() or '' }
for n = 7, #KEYS - 1 do
  local values = redis.pcall('HMGET', KEYS[n], unpack(FIELDS))
  if values.err then
    values = {}
  elseif not values[1] and redis.call('EXISTS', KEYS[n]) == 0 then
    values = 0
  end
  replies[n - 4] = values
end
return replies
