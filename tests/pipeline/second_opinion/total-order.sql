-- No two messages are in opposite order at two members of a view.
-- What one member alone delivered in a view is compared with nothing.
WITH ranked AS (
    SELECT grp, view, life, sender, first, min(index) AS place FROM run WHERE kind = 1 GROUP BY ALL
), shared AS (
    SELECT grp, view FROM ranked GROUP BY ALL HAVING count(DISTINCT life) > 1
), both_have AS (
    SELECT a.grp, a.view, a.life, b.life AS other, a.place, b.place AS other_place
    FROM ranked a JOIN ranked b USING (grp, view, sender, first) WHERE a.life < b.life
)
SELECT grp, 'kept' AS outcome FROM ranked SEMI JOIN shared USING (grp, view)
UNION ALL
SELECT grp, 'broken' FROM (
    SELECT *, lag(other_place) OVER (PARTITION BY grp, view, life, other ORDER BY place) AS before FROM both_have
) WHERE before > other_place
UNION ALL
-- A position is the number of messages that the journal has in the view before it.
SELECT grp, 'broken' FROM (
    SELECT grp, position, coalesce(sum(count) OVER (
        PARTITION BY grp, life, view ORDER BY index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS before
    FROM run WHERE kind = 1 AND view IS NOT NULL
) WHERE position <> before;
