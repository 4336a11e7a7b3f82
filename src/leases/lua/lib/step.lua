-- Holds, lives, and the course of every operation on one record.

local function without_expired_holds(r)
  local holds = {}
  for _, hold in ipairs(r.holds) do
    if hold[2] > now then
      holds[#holds + 1] = hold
    else
      r.idleSince = math.max(r.idleSince, hold[2])
    end
  end
  r.holds = holds
end

local function find_hold(r, id)
  for n, hold in ipairs(r.holds) do
    if hold[1] == id then return n end
  end
end

-- Adds or renews a hold; of too many, the one that would run out first goes.
local function add_hold(r, id, till)
  without_expired_holds(r)
  local n = find_hold(r, id)
  if n then
    r.holds[n][2] = till
  else
    r.holds[#r.holds + 1] = { id, till }
  end
  if #r.holds <= max_holds then return end
  local first
  for at, hold in ipairs(r.holds) do
    local best = first and r.holds[first]
    if hold[1] ~= id and (not best or hold[2] < best[2] or (hold[2] == best[2] and hold[1] < best[1])) then first = at end
  end
  table.remove(r.holds, first)
end

-- Since when nobody holds it; nil while a hold counts.
local function unheld_since(r)
  local since = r.idleSince
  for _, hold in ipairs(r.holds) do
    if hold[2] > now then return nil end
    since = math.max(since, hold[2])
  end
  return since
end

-- A record that an earlier life wrote is not trusted: whoever held it may come back, and somebody has to look at it.
local function into_life(r, life)
  if r.life == life then return false end
  r.life, r.verified = life, false
  if r.state == 'ready' then add_hold(r, 0, now + hold_ms) end
  return true
end

local function is_expired(r)
  return r.expiresAt <= now
end

local function is_mine(r, state, fence)
  return r and r.owner == owner and r.state == state and r.fence == fence
end

local function is_named(r, container)
  return r and r.state == 'ready' and r.container == container
end

local function new_record(state, fence, life)
  return {
    v = digits(version), state = state, owner = owner, fence = fence, since = fence, container = '', engine = '',
    url = '', expiresAt = lease_end, holds = {}, idleSince = now, lastActiveAt = now, life = life, verified = false,
    profile = '', userId = '', threadId = '', spec = '', createdAt = now, previous = '',
  }
end

-- A start of mine, from the beginning. The container that the record names becomes its residue.
local function make_starting(r, fence)
  r.state, r.owner, r.fence, r.since, r.url, r.expiresAt = 'starting', owner, fence, fence, '', lease_end
  r.holds, r.idleSince, r.lastActiveAt, r.verified, r.createdAt = {}, now, now, false, now
end

local function make_destroying(r, fence, container)
  r.state, r.owner, r.fence, r.container, r.url = 'destroying', owner, fence, container, ''
  r.expiresAt, r.holds, r.verified = lease_end, {}, false
end

local function make_tombstone(r, previous)
  r.state, r.container, r.engine, r.url = 'gone', '', '', ''
  r.expiresAt, r.holds, r.verified, r.previous = lease_end, {}, false, previous
end

-- Runs `operation(record, stored, life)`, which gives the reply and, where it changed or made one, the record.
-- `record` is nil for a tombstone that has stood for its lease, `stored` is not. A record of an earlier life is
-- written back in any case. `clears`: a record that cannot be read is removed rather than reported.
local function step(operation, clears)
  local key, id = KEYS[7], ARGV[8]
  local life = settle_life()
  local stored, unreadable, newer = load(key)
  if unreadable then
    if newer or not clears then return unreadable end
    forget(key, id)
  end
  local brought = stored and into_life(stored, life)
  local absent = not stored or (stored.state == 'gone' and is_expired(stored))
  local reply, record = operation(not absent and stored or nil, stored, life)
  if record then
    record.was = record.was or (stored and stored.was)
    save(key, id, record)
  elseif brought then
    save(key, id, stored)
  end
  return reply
end

-- A container that runs and whose record is missing; what is known of it begins at arg(n).
local function describe_found(r, n)
  r.container, r.engine, r.url, r.since = arg(n), arg(n + 1), arg(n + 2), tonumber(arg(n + 3))
  r.profile, r.userId, r.threadId, r.spec = arg(n + 4), arg(n + 5), arg(n + 6), arg(n + 7)
  r.createdAt, r.holds = tonumber(arg(n + 8)) or now, { { 0, now + hold_ms } }
end
