-- In the last common view all that reach quiet delivered the same set.
WITH sets AS (
    SELECT DISTINCT q.grp, q.view, q.life, d.sender, d.number
    FROM quiet q JOIN delivered d USING (grp, life, view) WHERE d.index < q.until
), anybody AS (
    SELECT grp, view, sender, number, count(*) AS by FROM sets GROUP BY ALL
), members AS (
    SELECT grp, view, count(*) AS many FROM quiet GROUP BY ALL
)
SELECT a.grp, CASE WHEN a.by = m.many THEN 'kept' ELSE 'broken' END AS outcome
FROM anybody a JOIN members m USING (grp, view) WHERE m.many > 1;
