-- ARGV: fence, container.
-- Replies: moved | record, record
return step(function(r)
  if not is_mine(r, 'starting', tonumber(arg(1))) then return { 'moved' } end
  r.container, r.expiresAt = arg(2), lease_end
  return { 'record', encode(r) }, r
end)
