-- Nobody lacks what another delivered before a message that both delivered in a view.
-- What one member alone delivered in a view is compared with nothing.
WITH ranked AS (
    SELECT grp, view, life, sender, first, min(index) AS place FROM run WHERE kind = 1 GROUP BY ALL
), shared AS (
    SELECT grp, view FROM ranked GROUP BY ALL HAVING count(DISTINCT life) > 1
), last_common AS (
    SELECT a.grp, a.view, a.life, b.life AS other, max(a.place) AS until
    FROM ranked a JOIN ranked b USING (grp, view, sender, first) WHERE a.life <> b.life GROUP BY ALL
)
SELECT grp, 'kept' AS outcome FROM ranked SEMI JOIN shared USING (grp, view)
UNION ALL
SELECT r.grp, 'broken'
FROM last_common c JOIN ranked r ON r.grp = c.grp AND r.view = c.view AND r.life = c.life AND r.place < c.until
ANTI JOIN ranked o ON o.grp = c.grp AND o.view = c.view AND o.life = c.other AND o.sender = r.sender AND o.first = r.first;
