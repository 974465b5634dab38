-- Members that go together from one view to the next delivered the same set in it.
WITH goes AS (
    SELECT grp, view, next, life FROM installed WHERE next IS NOT NULL
), sets AS (
    SELECT DISTINCT g.grp, g.view, g.next, d.sender, d.number, g.life
    FROM goes g JOIN delivered d USING (grp, life, view)
), anybody AS (
    SELECT grp, view, next, sender, number, count(*) AS by FROM sets GROUP BY ALL
), companions AS (
    SELECT grp, view, next, count(*) AS many FROM goes GROUP BY ALL
)
SELECT a.grp, CASE WHEN a.by = c.many THEN 'kept' ELSE 'broken' END AS outcome
FROM anybody a JOIN companions c USING (grp, view, next) WHERE c.many > 1;
