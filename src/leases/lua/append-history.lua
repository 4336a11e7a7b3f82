-- KEYS: from 7 on, for each line, the list that it belongs to and the other list of its sandbox: both live as long.
-- ARGV: 8 how long a list is kept, in ms; from 9 on for each line how many its list keeps, and the line.
-- Replies: ok
for n = 7, #KEYS - 2, 2 do
  local at = n + 2
  redis.call('RPUSH', KEYS[n], ARGV[at + 1])
  redis.call('LTRIM', KEYS[n], -tonumber(ARGV[at]), -1)
end
for n = 7, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[n], ARGV[8])
end
return { 'ok' }
