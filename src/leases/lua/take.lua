-- ARGV: profile, userId, threadId, spec, a fence that the caller knows, limit of the fleet, limit of a user.
-- Replies: mismatch | full, 'fleet' or 'user' | wait, record | ready, record, 1 if it was held before | starting, record
local profile, userId, threadId, spec, known = arg(1), arg(2), arg(3), arg(4), tonumber(arg(5))
local fleet_limit, user_limit = tonumber(arg(6)), tonumber(arg(7))

local function differs(recorded, asked)
  return recorded ~= '' and recorded ~= asked
end

local function is_full()
  if fleet_limit > 0 and redis.call('HLEN', KEYS[4]) >= fleet_limit then return 'fleet' end
  local hash = user_hash(userId)
  if user_limit > 0 and redis.call('ZLEXCOUNT', KEYS[5], '[' .. hash .. ':', '(' .. hash .. ';') >= user_limit then
    return 'user'
  end
end

return step(function(r, stored, life)
  if r and (differs(r.profile, profile) or differs(r.userId, userId) or differs(r.threadId, threadId)) then
    return { 'mismatch' }
  end
  local fence = next_fence(stored and stored.fence, known)
  if not r or r.state == 'gone' then
    local scope = is_full()
    if scope then return { 'full', scope } end
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
