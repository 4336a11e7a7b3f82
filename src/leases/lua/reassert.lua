-- ARGV: the fence that is remembered, then the container: its id, engine, url, since, profile, userId, threadId, spec,
-- created at (empty: unknown).
-- Replies: refused | record, record
local fence = tonumber(arg(1))

return step(function(r, stored, life)
  if r and r.fence >= fence and not is_mine(r, 'starting', fence) then return { 'refused' } end
  r = new_record('ready', next_fence(stored and stored.fence, fence, tonumber(arg(5))), life)
  describe_found(r, 2)
  return { 'record', encode(r) }, r
end)
