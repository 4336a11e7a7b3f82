-- KEYS: 7 the pool ("<profile and spec>:<age>:<container>"), 8 all spares (container → place in the pool, and the
-- spare after a line's end), 9 those taken out, by the time until which that is remembered: "<container>" by a start,
-- "retired:<container>" to be removed.
-- ARGV: from 8 on container, its place in the pool, spare.
-- Replies: ok
redis.call('ZREMRANGEBYSCORE', KEYS[9], '-inf', digits(now))
local taken = redis.call('ZSCORE', KEYS[9], ARGV[8]) or redis.call('ZSCORE', KEYS[9], 'retired:' .. ARGV[8])
if taken then return { 'ok' } end
local before = redis.call('HGET', KEYS[8], ARGV[8])
if before then redis.call('ZREM', KEYS[7], string.match(before, '^[^\n]*')) end
redis.call('ZADD', KEYS[7], 0, ARGV[9])
redis.call('HSET', KEYS[8], ARGV[8], ARGV[9] .. '\n' .. ARGV[10])
return { 'ok' }
