-- ARGV: 1 if a container was found, then what is known of it: container, engine, url, since, profile, userId,
-- threadId, spec, created at (empty: unknown).
-- Replies: refused | record, record
return step(function(r, stored, life)
  if not r then
    if arg(1) ~= '1' then return { 'refused' } end
    local since = tonumber(arg(5))
    r = new_record('ready', next_fence(stored and stored.fence, since), life)
    describe_found(r, 2)
  elseif r.state == 'starting' and is_expired(r) and arg(1) == '1' then
    local was = r
    r = new_record('ready', next_fence(was.fence, tonumber(arg(5))), life)
    describe_found(r, 2)
    r.profile, r.userId, r.threadId, r.previous = was.profile, was.userId, was.threadId, was.previous
  elseif r.state == 'ready' and is_expired(r) then
    r.owner, r.expiresAt = owner, lease_end
  else
    return { 'refused' }
  end
  return { 'record', encode(r) }, r
end)
