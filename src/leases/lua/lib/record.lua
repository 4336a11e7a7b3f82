-- A record: a hash of these fields, all of them always there; nothing is an empty string.
local FIELDS = {
  'v', 'state', 'owner', 'fence', 'since', 'container', 'engine', 'url', 'expiresAt', 'holds', 'idleSince',
  'lastActiveAt', 'life', 'verified', 'profile', 'userId', 'threadId', 'spec', 'createdAt', 'previous',
}
local NUMBERS = { 'fence', 'since', 'expiresAt', 'idleSince', 'lastActiveAt', 'createdAt' }
local STATE, FENCE, HOLDS, IDLE_SINCE, USER_ID = 2, 4, 10, 11, 16
local STATES = { starting = true, ready = true, destroying = true, gone = true }

local function is_number(text)
  return #text <= 16 and string.find(text, '^%d+$') ~= nil
end

-- A list of { hold, until } in the order in which they were added; nil for text that is none.
local function decode_holds(text)
  local holds = {}
  for hold, till in string.gmatch(text, '(%d+)=(%d+)') do
    if #hold > 16 or #till > 16 then return nil end
    holds[#holds + 1] = { tonumber(hold), tonumber(till) }
  end
  return holds
end

local function encode_holds(holds)
  local parts = {}
  for n, hold in ipairs(holds) do
    parts[n] = digits(hold[1]) .. '=' .. digits(hold[2])
  end
  return table.concat(parts, ',')
end

-- The record, or nil; or nil and why not: { 'unreadable', fields… }, and whether a newer version wrote it.
local function load(key)
  local values = redis.pcall('HMGET', key, unpack(FIELDS))
  if values.err then return nil, { 'unreadable' }, false end
  local r, some, all = {}, false, true
  for n, field in ipairs(FIELDS) do
    r[field] = values[n]
    some = some or values[n] ~= false
    all = all and values[n] ~= false
  end
  if not some and redis.call('EXISTS', key) == 0 then return nil end
  local unreadable = { 'unreadable', unpack(values) }
  if not r.v or not is_number(r.v) then return nil, unreadable, false end
  if tonumber(r.v) > version then return nil, unreadable, true end
  local holds = all and decode_holds(r.holds)
  if not holds or encode_holds(holds) ~= r.holds or not STATES[r.state] or r.owner == '' then
    return nil, unreadable, false
  end
  for _, field in ipairs(NUMBERS) do
    if not is_number(r[field]) then return nil, unreadable, false end
    r[field] = tonumber(r[field])
  end
  r.holds, r.verified = holds, r.verified == '1'
  r.was = values
  return r
end

-- Its fields' values. To be called once it is as it shall be: what was encoded is what is saved.
local function encode(r)
  r.values = r.values or {
    r.v, r.state, r.owner, digits(r.fence), digits(r.since), r.container, r.engine, r.url, digits(r.expiresAt),
    encode_holds(r.holds), digits(r.idleSince), digits(r.lastActiveAt), r.life, r.verified and '1' or '0', r.profile,
    r.userId, r.threadId, r.spec, digits(r.createdAt), r.previous,
  }
  return r.values
end

-- Counts the sandbox against the limits, its own user's among them; `user` nil: it counts no more.
local function count(id, user)
  local before = redis.call('HGET', KEYS[4], id)
  if before == (user or false) then return end
  if before then redis.call('ZREM', KEYS[5], before .. ':' .. id) end
  if user then
    redis.call('HSET', KEYS[4], id, user)
    redis.call('ZADD', KEYS[5], 0, user .. ':' .. id)
  else
    redis.call('HDEL', KEYS[4], id)
    tell('slot-freed', before)
  end
end

local function user_hash(userId)
  return userId == '' and '' or redis.sha1hex(userId)
end

-- Which limit a user's next sandbox would exceed: 'fleet', 'user' or nil. A limit of 0 is none.
local function limit_reached(user, of_fleet, of_user)
  if of_fleet > 0 and redis.call('HLEN', KEYS[4]) >= of_fleet then return 'fleet' end
  if of_user > 0 and redis.call('ZLEXCOUNT', KEYS[5], '[' .. user .. ':', '(' .. user .. ';') >= of_user then
    return 'user'
  end
end

-- Notes from when on it is unheld: what eviction looks for.
local function note_unheld(id, r)
  if r.state ~= 'ready' then
    redis.call('ZREM', unheld_key, id)
    return
  end
  local from = r.idleSince
  for _, hold in ipairs(r.holds) do
    from = math.max(from, hold[2])
  end
  redis.call('ZADD', unheld_key, digits(from), id)
end

-- Removes everything that is known of an id.
local function forget(key, id)
  redis.call('DEL', key)
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[6], id)
  redis.call('ZREM', unheld_key, id)
  count(id, nil)
end

-- Ids of tombstones whose keys have ended leave the index, a few at a time.
local function remove_old_tombstones()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', digits(now), 'LIMIT', 0, 16)) do
    redis.call('ZREM', KEYS[3], id)
    redis.call('ZREM', KEYS[6], id)
  end
end

local function save(key, id, r)
  local values, was, changed = encode(r), r.was or {}, {}
  for n, field in ipairs(FIELDS) do
    if values[n] ~= was[n] then
      changed[#changed + 1] = field
      changed[#changed + 1] = values[n]
    end
  end
  if #changed > 0 then redis.call('HSET', key, unpack(changed)) end
  if values[FENCE] ~= was[FENCE] then note_fence(r.fence) end
  local held = values[HOLDS] ~= was[HOLDS] or values[IDLE_SINCE] ~= was[IDLE_SINCE]
  if held or values[STATE] ~= was[STATE] then note_unheld(id, r) end
  if r.state == 'gone' then
    local ends = digits(r.expiresAt - lease_ms + math.max(lease_ms, kept_ms))
    redis.call('ZADD', KEYS[6], ends, id)
    redis.call('PEXPIREAT', key, ends)
  end
  if values[STATE] ~= was[STATE] or values[USER_ID] ~= was[USER_ID] then
    remove_old_tombstones()
    redis.call('ZADD', KEYS[3], 0, id)
    if r.state == 'gone' then
      count(id, nil)
    else
      redis.call('PERSIST', key)
      redis.call('ZREM', KEYS[6], id)
      count(id, user_hash(r.userId))
    end
  end
end
