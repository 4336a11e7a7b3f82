-- ARGV: fence, container, engine, url, 1 if it was found, since, spec, created at (empty: unknown), hold's time in ms.
-- Replies: moved | record, record
local fence, found = tonumber(arg(1)), arg(5) == '1'

return step(function(r)
  if not is_mine(r, 'starting', fence) then return { 'moved' } end
  r.state, r.container, r.engine, r.url = 'ready', arg(2), arg(3), arg(4)
  r.since, r.spec, r.createdAt = tonumber(arg(6)), arg(7), tonumber(arg(8)) or r.createdAt
  r.expiresAt, r.idleSince, r.lastActiveAt, r.verified = lease_end, now, now, not found
  r.holds = { { fence, now + tonumber(arg(9)) } }
  if found then r.holds[2] = { 0, now + hold_ms } end
  return { 'record', encode(r) }, r
end)
