-- Every unicast message sent is delivered or reported, if its sender reached quiet or stopped.
WITH ended AS (
    SELECT grp, life FROM quiet UNION SELECT grp, life FROM event WHERE kind = 'stop'
), told AS (
    SELECT grp, life, index, peer, unnest(range(first, first + count)) AS number FROM run WHERE kind = 2
), came AS (
    SELECT DISTINCT grp, life AS peer, sender AS life, unnest(range(first, first + count)) AS number
    FROM run WHERE kind = 3
), reported AS (
    SELECT DISTINCT e.grp, e.life, n.life AS peer, e.number
    FROM (SELECT grp, life, peer, unnest(range(first, first + count)) AS number FROM event
          WHERE kind = 'undelivered' AND peer IS NOT NULL) e
    JOIN life_name n ON n.grp = e.grp AND n.address = e.peer
)
SELECT t.grp,
       CASE WHEN c.number IS NOT NULL OR r.number IS NOT NULL THEN 'kept'
            WHEN coalesce(p.complete, false) THEN 'broken' ELSE 'skipped' END AS outcome
FROM told t JOIN ended USING (grp, life)
LEFT JOIN came c USING (grp, life, peer, number)
LEFT JOIN reported r USING (grp, life, peer, number)
LEFT JOIN life p ON p.grp = t.grp AND p.life = t.peer;
