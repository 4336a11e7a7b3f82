-- ARGV: kind of removal, fence (0 for a stray), container, engine (empty: unknown).
-- Replies: mine | named | starting | taken, each with the life
local kind, fence, container, engine = arg(1), tonumber(arg(2)), arg(3), arg(4)
local OWN_STATE = { teardown = 'destroying', residue = 'starting' }

return step(function(r, _, life)
  if kind == 'teardown' and not r then
    r = new_record('destroying', fence, life)
    r.container, r.engine = container, engine
    return { 'mine', life }, r
  end
  if OWN_STATE[kind] and is_mine(r, OWN_STATE[kind], fence) then
    r.expiresAt = lease_end
    return { 'mine', life }, r
  end
  if kind == 'stray' then
    local unnamed = not r or r.state == 'gone'
    if unnamed or (r.state == 'ready' and r.verified and r.container ~= container) then return { 'mine', life } end
  end
  if is_named(r, container) then return { 'named', life } end
  if r and r.state == 'starting' and r.container == '' then return { 'starting', life } end
  return { 'taken', life }
end)
