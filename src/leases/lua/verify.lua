-- ARGV: container, url.
-- Replies: moved | record, record
return step(function(r)
  if not is_named(r, arg(1)) then return { 'moved' } end
  r.verified, r.url = true, arg(2)
  return { 'record', encode(r) }, r
end)
