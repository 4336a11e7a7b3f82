-- KEYS: 7 the life in which the running containers were counted. ARGV: 8 the life in which this census began.
-- Replies: counted | moved
if present_life() ~= ARGV[8] then return { 'moved' } end
redis.call('SET', KEYS[7], ARGV[8])
return { 'counted' }
