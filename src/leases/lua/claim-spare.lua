-- KEYS: 8 the pool, 9 all spares, 10 those taken out; as for add-spare.
-- ARGV: fence, hash of profile and spec.
-- Replies: moved | none | spare, spare
return step(function(r)
  if not is_mine(r, 'starting', tonumber(arg(1))) then return { 'moved' } end
  local place = redis.call('ZRANGEBYLEX', KEYS[8], '[' .. arg(2) .. ':', '(' .. arg(2) .. ';', 'LIMIT', 0, 1)[1]
  if not place then return { 'none' } end
  local container = string.match(place, '[^:]*$')
  local spare = redis.call('HGET', KEYS[9], container)
  redis.call('ZREM', KEYS[8], place)
  redis.call('HDEL', KEYS[9], container)
  redis.call('ZREMRANGEBYSCORE', KEYS[10], '-inf', digits(now))
  redis.call('ZADD', KEYS[10], digits(now + kept_ms), container)
  tell('spare-taken')
  return { 'spare', string.match(spare, '\n(.*)$') }
end)
