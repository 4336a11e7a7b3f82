-- What every script is given, and when it runs.
--   KEYS[1] life              KEYS[2] last fence         KEYS[3] index of ids (all scores 0)
--   KEYS[4] counted: id → hash of its user               KEYS[5] users: "<hash of user>:<id>" (all scores 0)
--   KEYS[6] tombstones by the time of their end          KEYS[7] the record; of a batch: from 7 on
--   the last of KEYS: ready ones by the time from which on they are unheld, unless a hold is renewed
--   ARGV[1] owner             ARGV[2] run id of server   ARGV[3] lease, ms          ARGV[4] hold's time, ms
--   ARGV[5] what a tombstone is kept for, ms             ARGV[6] most holds         ARGV[7] record version
--   ARGV[8] id; of a batch: its arguments from 8 on      ARGV[9] and on: the operation's own, arg(1) and on
-- Numbers cross as decimal digits: Lua's own spelling of one with 16 digits is not exact, its arithmetic is.
local owner, run = ARGV[1], ARGV[2]
local lease_ms, hold_ms, kept_ms = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local max_holds, version = tonumber(ARGV[6]), tonumber(ARGV[7])

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease_end = now + lease_ms
local unheld_key = KEYS[#KEYS]
-- KEYS[1] without its last word, 'life'.
local channel = string.sub(KEYS[1], 1, -5) .. 'news'

local function arg(n)
  return ARGV[8 + n]
end

local function digits(number)
  return string.format('%.0f', number)
end

-- The present life; false where none is going on: it ran out, its keys are lost, or another server's run began it.
local function present_life()
  local life = redis.call('GET', KEYS[1])
  return life and string.sub(life, 1, #run + 1) == run .. ':' and life
end

local function settle_life()
  local life = present_life()
  if not life then
    life = run .. ':' .. digits(micros)
    redis.call('SET', KEYS[1], life, 'PX', ARGV[3])
  end
  return life
end

-- Publishes news for whoever waits, about a user (a hash; nil: about nobody). Nobody has to hear it, so a server that does
-- not let this client publish is no fault.
local function tell(news, user)
  redis.pcall('PUBLISH', channel, news .. ':' .. (user or ''))
end

local last_fence

local function read_last_fence()
  last_fence = last_fence or tonumber(redis.call('GET', KEYS[2]) or 0)
  return last_fence
end

-- Larger than every fence of this deployment so far, and than each that is given.
local function next_fence(...)
  local fence = math.max(micros, read_last_fence() + 1)
  for n = 1, select('#', ...) do
    fence = math.max(fence, (select(n, ...) or 0) + 1)
  end
  return fence
end

-- No later fence will be smaller than this one.
local function note_fence(fence)
  if fence <= read_last_fence() then return end
  last_fence = fence
  redis.call('SET', KEYS[2], digits(fence))
end
