-- KEYS: 7 the engine's mark. ARGV: from 8 on the mark that was seen.
-- Replies: the mark that is remembered
redis.call('SETNX', KEYS[7], ARGV[8])
return { redis.call('GET', KEYS[7]) }
