-- ARGV: container, why it ended.
-- Replies: ended | nothing
return step(function(r)
  if not is_named(r, arg(1)) or not (r.owner == owner or is_expired(r)) then return { 'nothing' } end
  make_tombstone(r, arg(2))
  return { 'ended' }, r
end)
