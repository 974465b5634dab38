-- In the last common view all that reach quiet delivered the same set of runs.
WITH sets AS (
    SELECT DISTINCT q.grp, q.view, q.life, r.sender, r.first
    FROM quiet q JOIN run r USING (grp, life, view) WHERE r.kind = 1 AND r.index < q.until
), anybody AS (
    SELECT grp, view, sender, first, count(*) AS by FROM sets GROUP BY ALL
), members AS (
    SELECT grp, view, count(*) AS many FROM quiet GROUP BY ALL
)
SELECT a.grp, CASE WHEN a.by = m.many THEN 'kept' ELSE 'broken' END AS outcome
FROM anybody a JOIN members m USING (grp, view) WHERE m.many > 1;
