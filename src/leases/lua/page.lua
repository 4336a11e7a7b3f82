-- ARGV: from 8 on the id after which the page begins (empty: at the start), and how many ids at most.
-- Replies: ids in their order
return redis.call('ZRANGEBYLEX', KEYS[3], ARGV[8] == '' and '-' or '(' .. ARGV[8], '+', 'LIMIT', 0, ARGV[9])
