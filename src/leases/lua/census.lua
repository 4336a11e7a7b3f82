-- KEYS: from 7 on the records. ARGV: from 8 on an id, and the hash of its user (empty: unknown) where a container runs, or
-- - where none does. What has a record, other than a tombstone, counts by that and is left alone. A tombstone that has not
-- stood for its lease is newer than the list: what that shows has been removed since.
-- Replies: ok
for n = 7, #KEYS - 1 do
  local at = 8 + 2 * (n - 7)
  local id, user = ARGV[at], ARGV[at + 1]
  local r, unreadable = load(KEYS[n])
  if not unreadable and (not r or r.state == 'gone') then
    if user == '-' then
      count(id, nil)
    elseif (not r or is_expired(r)) and redis.call('HEXISTS', KEYS[4], id) == 0 then
      count(id, user)
    end
  end
end
return { 'ok' }
