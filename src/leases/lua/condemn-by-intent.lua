-- ARGV: container (empty: none was found).
-- Replies: wait | underway | nothing | claim, record
local container = arg(1)

return step(function(r, stored, life)
  local fence = next_fence(stored and stored.fence)
  if not r or r.state == 'gone' then
    if container == '' then return { 'nothing' } end
    r = stored or new_record('destroying', fence, life)
  elseif r.state == 'destroying' then
    return { 'underway' }
  elseif r.state == 'ready' then
    if r.container ~= container then return { 'nothing' } end
  elseif not is_expired(r) then
    return { 'wait' }
  end
  make_destroying(r, fence, container ~= '' and container or r.container)
  return { 'claim', encode(r) }, r
end, true)
