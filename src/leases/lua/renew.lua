-- KEYS: from 7 on the records. ARGV: from 8 on an id, a fence, and 1 if it is remembered ready, for each of them.
-- Replies: for each record renewed | lapsed | lost | unreadable. Without any record it keeps the life going all the same.
local life = settle_life()
redis.call('PEXPIRE', KEYS[1], ARGV[3])

local function renew(key, id, fence, ready)
  local r, unreadable = load(key)
  if unreadable then return 'unreadable' end
  if not r then return 'lapsed' end
  local brought = into_life(r, life)
  local answer = 'lost'
  local unactivated = ready and is_mine(r, 'starting', fence)
  if r.fence < fence or (r.state == 'gone' and is_expired(r)) or unactivated then
    answer = 'lapsed'
  elseif r.owner == owner and r.fence == fence and (r.state == 'starting' or r.state == 'ready') then
    answer = 'renewed'
    r.expiresAt = lease_end
  end
  if brought then
    save(key, id, r)
  elseif answer == 'renewed' then
    redis.call('HSET', key, 'expiresAt', digits(lease_end))
  end
  return answer
end

local replies = {}
for n = 7, #KEYS - 1 do
  local at = 8 + 3 * (n - 7)
  replies[n - 6] = renew(KEYS[n], ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2] == '1')
end
return replies
