-- ARGV: hold.
-- Replies: not_found | hold_lost | record, record
local hold = tonumber(arg(1))

return step(function(r)
  if not r or r.state == 'gone' or r.state == 'destroying' then return { 'not_found' } end
  if r.state == 'starting' or hold < r.since or hold == 0 then return { 'hold_lost' } end
  add_hold(r, hold, now + hold_ms)
  r.lastActiveAt = now
  return { 'record', encode(r) }, r
end)
