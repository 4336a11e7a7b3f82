-- KEYS: 7 the pool, 8 all spares; as for add-spare.
-- Replies: number of sandboxes that count, then every spare
local reply = { redis.call('HLEN', KEYS[4]) }
for _, spare in ipairs(redis.call('HVALS', KEYS[8])) do
  reply[#reply + 1] = string.match(spare, '\n(.*)$')
end
return reply
