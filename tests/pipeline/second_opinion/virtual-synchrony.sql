-- Members that go together from one view to the next delivered the same set of runs in it.
WITH goes AS (
    SELECT grp, view, next, life FROM installed WHERE next IS NOT NULL
), sets AS (
    SELECT DISTINCT g.grp, g.view, g.next, r.sender, r.first, g.life
    FROM goes g JOIN run r USING (grp, life, view) WHERE r.kind = 1
), anybody AS (
    SELECT grp, view, next, sender, first, count(*) AS by FROM sets GROUP BY ALL
), companions AS (
    SELECT grp, view, next, count(*) AS many FROM goes GROUP BY ALL
)
SELECT a.grp, CASE WHEN a.by = c.many THEN 'kept' ELSE 'broken' END AS outcome
FROM anybody a JOIN companions c USING (grp, view, next) WHERE c.many > 1;
