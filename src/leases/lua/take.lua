-- KEYS: 8 the life in which the running containers were counted.
-- ARGV: profile, userId, threadId, spec, a fence that the caller knows, limit of the fleet, limit of a user, the limit at
-- which others wait who were here first (empty: none).
-- Replies: mismatch | uncounted | full, 'fleet' or 'user' | wait, record | ready, record, 1 if it was held before |
-- starting, record
local profile, userId, threadId, spec, known = arg(1), arg(2), arg(3), arg(4), tonumber(arg(5))
local fleet_limit, user_limit = tonumber(arg(6)), tonumber(arg(7))

local function differs(recorded, asked)
  return recorded ~= '' and recorded ~= asked
end

-- Why a new sandbox is not let in; nil: it is. One that counts already has a container that runs.
local function refusal(life)
  local unlimited = fleet_limit == 0 and user_limit == 0
  if unlimited or redis.call('HEXISTS', KEYS[4], ARGV[8]) == 1 then return end
  if redis.call('GET', KEYS[8]) ~= life then return { 'uncounted' } end
  local scope = arg(8) ~= '' and arg(8) or limit_reached(user_hash(userId), fleet_limit, user_limit)
  return scope and { 'full', scope }
end

return step(function(r, stored, life)
  if r and (differs(r.profile, profile) or differs(r.userId, userId) or differs(r.threadId, threadId)) then
    return { 'mismatch' }
  end
  local fence = next_fence(stored and stored.fence, known)
  if not r or r.state == 'gone' then
    local refused = refusal(life)
    if refused then return refused end
    r = new_record('starting', fence, life)
    r.spec, r.previous = spec, stored and stored.previous or ''
  elseif r.state == 'ready' then
    local held = unheld_since(r) == nil
    add_hold(r, fence, now + hold_ms)
    r.owner, r.fence, r.expiresAt, r.lastActiveAt = owner, fence, lease_end, now
    r.profile, r.userId, r.threadId = profile, userId, threadId
    return { 'ready', encode(r), held and '1' or '0' }, r
  elseif r.state == 'starting' and r.owner ~= owner and not is_expired(r) then
    return { 'wait', encode(r) }
  else
    make_starting(r, fence)
    r.spec = spec
  end
  r.profile, r.userId, r.threadId = profile, userId, threadId
  return { 'starting', encode(r) }, r
end)
