-- One order over everything: each message has one view and position, no two share them, and at each member they rise.
-- A member that began another history took with it what the others dropped in its view.
WITH apart AS (
    SELECT i.grp, i.life, i.view
    FROM installed i JOIN event a USING (grp, life, index)
    JOIN event b ON b.grp = i.grp AND b.life = i.life AND b.kind = 'view' AND b.index = i.left_at
    WHERE i.next IS NOT NULL AND b.history IS DISTINCT FROM a.history
), named AS (
    SELECT DISTINCT grp, view, view_number, split_part(view_creator, '@', 1) AS creator,
           split_part(view_creator, '@', 2) AS life_of_creator
    FROM installed
), placed AS (
    SELECT r.grp, r.life, r.index, r.sender, r.first, r.view, r.position,
           (n.view_number, n.creator, n.life_of_creator, r.position) AS place
    FROM run r ANTI JOIN apart USING (grp, life, view) LEFT JOIN named n USING (grp, view)
    WHERE r.kind = 1 AND r.view IS NOT NULL
), ordered AS (
    SELECT *, lag(place) OVER (PARTITION BY grp, life ORDER BY index) AS before FROM placed
), places AS (
    SELECT grp, sender, first FROM placed GROUP BY ALL HAVING count(DISTINCT (view, position)) > 1
), messages AS (
    SELECT grp, view, position FROM placed GROUP BY ALL HAVING count(DISTINCT (sender, first)) > 1
)
SELECT grp, CASE WHEN position IS NULL OR before > place OR (grp, sender, first) IN (FROM places)
                      OR (grp, view, position) IN (FROM messages) THEN 'broken' ELSE 'kept' END AS outcome
FROM ordered;
