-- ARGV: hold, limit of the fleet, limit of a user.
-- Replies: not_found | record, record
local hold = tonumber(arg(1))

return step(function(r)
  if not r or r.state == 'gone' then return { 'not_found' } end
  local n = r.state == 'ready' and hold ~= 0 and find_hold(r, hold)
  if not n or r.holds[n][2] <= now then
    without_expired_holds(r)
    return { 'record', encode(r) }
  end
  table.remove(r.holds, n)
  without_expired_holds(r)
  if #r.holds == 0 then
    r.idleSince = now
    local user = user_hash(r.userId)
    if limit_reached(user, tonumber(arg(2)), tonumber(arg(3))) then tell('unheld', user) end
  end
  r.lastActiveAt = now
  return { 'record', encode(r) }, r
end)
