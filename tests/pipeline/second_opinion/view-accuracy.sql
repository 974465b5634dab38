-- Before the first fault a view loses only members that began to leave, and merges only views that were born apart;
-- at quiet there is one view with exactly those that reach quiet.  Without marks nothing is judged.
-- A view is calm unless a journal of one of its installers has a fault before it, or an earlier view of one of its
-- installers is not calm.
CREATE OR REPLACE TEMP TABLE disturbed AS
WITH RECURSIVE wild(grp, view) AS (
    SELECT DISTINCT i.grp, i.view FROM installed i JOIN event f USING (grp, life)
    WHERE f.kind = 'fault' AND f.index < i.index
    UNION
    SELECT later.grp, later.view
    FROM wild w JOIN installed i ON i.grp = w.grp AND i.view = w.view
    JOIN installed later ON later.grp = i.grp AND later.life = i.life AND later.index > i.index
)
SELECT * FROM wild;

WITH calm AS (
    SELECT i.*, s.complete
    FROM installed i JOIN linked k USING (grp, life) JOIN side s USING (grp, side)
    WHERE s.marked AND (i.grp, i.view) NOT IN (SELECT (grp, view) FROM disturbed)
), before AS (
    SELECT c.grp, c.life, c.view, c.complete, c.members, p.members AS old
    FROM calm c JOIN installed p ON p.grp = c.grp AND p.life = c.life AND p.view = c.previous AND p.index < c.index
), leaver AS (
    SELECT DISTINCT e.grp, l.address FROM event e JOIN life l USING (grp, life) WHERE e.kind = 'leave'
), lost AS (
    SELECT b.*, g.address, g.address IN (SELECT address FROM leaver x WHERE x.grp = g.grp) AS leaving
    FROM before b JOIN (SELECT DISTINCT grp, life, view, unnest(old) AS address FROM before) g USING (grp, life, view)
    WHERE NOT list_contains(b.members, g.address)
), merged AS (
    SELECT a.grp, a.view, a.life, a.complete, a.index, b.index AS other_index, b.address, b.life AS other
    FROM calm a JOIN calm b USING (grp, view) WHERE a.previous <> b.previous
), reunited AS (
    SELECT DISTINCT m.grp, m.view, m.complete
    FROM merged m JOIN installed e ON e.grp = m.grp AND e.life = m.life AND e.index < m.index
    WHERE list_contains(e.members, m.address)
), at_end AS (
    SELECT q.grp, q.side, q.life, q.view, i.members
    FROM quiet q JOIN side s USING (grp, side) LEFT JOIN installed i USING (grp, life, view) WHERE s.marked
), closed AS (
    SELECT grp, list(address) AS closed FROM life WHERE complete GROUP BY ALL
), ends AS (
    SELECT grp, side, count(DISTINCT view) AS views, list_sort(list(l.address)) AS there
    FROM at_end a JOIN life l USING (grp, life) GROUP BY ALL
)
SELECT grp, 'kept' AS outcome FROM calm
UNION ALL
SELECT grp, CASE WHEN leaving THEN 'kept' WHEN complete THEN 'broken' ELSE 'skipped' END FROM lost
UNION ALL
SELECT grp, CASE WHEN complete THEN 'broken' ELSE 'skipped' END FROM reunited
UNION ALL
-- A member of the last view that has no journal to its end may have reached quiet too.
SELECT a.grp, CASE WHEN e.views = 1 AND list_sort(a.members) = e.there THEN 'kept'
                   WHEN e.views = 1 AND list_has_all(a.members, e.there)
                        AND NOT list_has_all(list_concat(e.there, coalesce(c.closed, [])), a.members) THEN 'skipped'
                   ELSE 'broken' END
FROM at_end a JOIN ends e USING (grp, side) LEFT JOIN closed c USING (grp);
