-- KEYS: from 7 on the records. ARGV: from 8 on their ids.
-- Replies: ok
local life = settle_life()
for n = 7, #KEYS - 1 do
  local r = load(KEYS[n])
  local brought = r and into_life(r, life)
  local ends = r and r.owner == owner and r.state ~= 'gone' and not is_expired(r)
  if ends then r.expiresAt = now end
  if brought or ends then save(KEYS[n], ARGV[n + 1], r) end
end
return { 'ok' }
