-- ARGV: fence, why the sandbox ended (empty: not told).
-- Replies: dropped | nothing
return step(function(r)
  if not is_mine(r, 'destroying', tonumber(arg(1))) then return { 'nothing' } end
  make_tombstone(r, arg(2))
  return { 'dropped' }, r
end)
