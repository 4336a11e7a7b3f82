-- KEYS: 7 the pool, 8 all spares, 9 those taken out; as for add-spare.
-- ARGV: 8 container.
-- Replies: claimed | retired
redis.call('ZREMRANGEBYSCORE', KEYS[9], '-inf', digits(now))
if redis.call('ZSCORE', KEYS[9], ARGV[8]) then return { 'claimed' } end
local before = redis.call('HGET', KEYS[8], ARGV[8])
if before then redis.call('ZREM', KEYS[7], string.match(before, '^[^\n]*')) end
redis.call('HDEL', KEYS[8], ARGV[8])
redis.call('ZADD', KEYS[9], digits(now + kept_ms), 'retired:' .. ARGV[8])
return { 'retired' }
