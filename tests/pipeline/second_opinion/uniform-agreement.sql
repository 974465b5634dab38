-- What any member delivered in a view, every member delivered there that went on in the same history, or that has a mark
-- of quiet in it and was not blocked.  A member that began another history took with it what the others dropped.
WITH stay AS (
    SELECT i.grp, i.life, i.view, i.next, a.history, b.history AS next_history
    FROM installed i JOIN event a USING (grp, life, index)
    LEFT JOIN event b ON b.grp = i.grp AND b.life = i.life AND b.kind = 'view' AND b.index = i.left_at
), apart AS (
    SELECT grp, life, view FROM stay WHERE next IS NOT NULL AND next_history IS DISTINCT FROM history
), stopped AS (
    SELECT q.grp, q.life, arg_max(e.kind, e.index) = 'block' AS blocked
    FROM quiet q JOIN event e ON e.grp = q.grp AND e.life = q.life AND e.index < q.since
    WHERE e.kind IN ('block', 'unblock') GROUP BY ALL
), settled AS (
    SELECT q.grp, q.life, q.view, q.until FROM quiet q JOIN side s USING (grp, side) LEFT JOIN stopped t USING (grp, life)
    WHERE s.marked AND NOT coalesce(t.blocked, false)
), told AS (
    SELECT r.grp, r.view, r.life, r.sender, r.first, coalesce(r.index >= q.until, false) AS late
    FROM run r ANTI JOIN apart USING (grp, life, view) LEFT JOIN quiet q USING (grp, life)
    WHERE r.kind = 1 AND r.view IS NOT NULL
), must AS (
    SELECT grp, view, life, false AS at_quiet FROM stay WHERE next IS NOT NULL AND next_history IS NOT DISTINCT FROM history
    UNION ALL
    SELECT grp, view, life, true FROM settled
), wanted AS (
    SELECT DISTINCT m.grp, m.view, m.life, m.at_quiet, t.sender, t.first
    FROM must m JOIN told t USING (grp, view) WHERE NOT (m.at_quiet AND t.late)
), had AS (
    SELECT w.*, EXISTS (SELECT 1 FROM told t WHERE t.grp = w.grp AND t.view = w.view AND t.life = w.life
                        AND t.sender = w.sender AND t.first = w.first AND NOT (w.at_quiet AND t.late)) AS there
    FROM wanted w
), several AS (
    SELECT grp, view FROM stay GROUP BY ALL HAVING count(DISTINCT life) > 1
)
SELECT grp, CASE WHEN there THEN 'kept' ELSE 'broken' END AS outcome FROM had SEMI JOIN several USING (grp, view);
