-- For a census, which tells what runs.
-- Replies: the present life
return { settle_life() }
