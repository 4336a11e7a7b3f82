-- ARGV: container, why it ended (empty: unknown).
-- Replies: moved | record, record
return step(function(r)
  if not is_named(r, arg(1)) then return { 'moved' } end
  make_starting(r, next_fence(r.fence))
  if arg(2) ~= '' then r.previous = arg(2) end
  return { 'record', encode(r) }, r
end)
