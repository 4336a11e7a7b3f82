-- KEYS: 7 who tends the pool. ARGV: 8 1 to begin or go on, 0 to leave.
-- Replies: mine | left | peer
local tender = redis.call('GET', KEYS[7])
if tender and tender ~= owner then return { 'peer' } end
if ARGV[8] == '1' then
  redis.call('SET', KEYS[7], owner, 'PX', ARGV[3])
  return { 'mine' }
end
redis.call('DEL', KEYS[7])
return { 'left' }
