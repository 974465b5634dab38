-- What a sender had accepted and not delivered is listed to it when it stops: each `stop` comes behind one `undelivered`
-- for each run of unknown fate, whether the sender left or was excluded.
WITH ended AS (
    SELECT DISTINCT grp, life FROM event WHERE kind = 'stop'
), told AS (
    SELECT grp, life, number FROM delivered WHERE sender = life
    UNION
    SELECT grp, life, unnest(range(first, first + count)) FROM event
    WHERE kind IN ('gap', 'undelivered') AND sender = life AND peer IS NULL
)
SELECT s.grp, CASE WHEN t.number IS NULL THEN 'broken' ELSE 'kept' END AS outcome
FROM sent s JOIN ended USING (grp, life) LEFT JOIN told t USING (grp, life, number);
