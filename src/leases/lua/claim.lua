-- ARGV: fence, condition, container (empty: none), unheld for so many ms.
-- Replies: refused | claim, record
local fence, condition, container, unheld_ms = tonumber(arg(1)), arg(2), arg(3), tonumber(arg(4))

-- True while a hold counts that is not of the record's own fence.
local function others_hold(r)
  for _, hold in ipairs(r.holds) do
    if hold[1] ~= r.fence and hold[2] > now then return true end
  end
  return false
end

local function may_claim(r)
  local mine, unheld = r.owner == owner, unheld_since(r)
  if condition == 'idle' then return r.state == 'ready' and mine and unheld and now - unheld >= unheld_ms end
  if condition == 'shutdown' then return r.state == 'ready' and mine end
  if condition == 'replace' then return r.state == 'ready' and mine and not others_hold(r) end
  if condition == 'capacity' then return r.state == 'ready' and unheld end
  if condition == 'failed-start' then return r.state == 'starting' and mine end
  if condition == 'expired' then return (r.state == 'starting' or r.state == 'destroying') and is_expired(r) end
  return condition == 'unsettled' and is_named(r, container) and not r.verified
end

return step(function(r)
  if not r or r.fence ~= fence then return { 'refused' } end
  local again = is_mine(r, 'destroying', fence) and not (condition == 'expired' and is_expired(r))
  if again then return { 'claim', encode(r) } end
  if not may_claim(r) then return { 'refused' } end
  local keeps = r.owner == owner and condition ~= 'expired' and condition ~= 'unsettled'
  local named = r.state == 'starting' and container ~= '' and container or r.container
  make_destroying(r, keeps and fence or next_fence(fence), named)
  return { 'claim', encode(r) }, r
end)
