-- A sender that reaches quiet has by then delivered each own message or, only in a merged view, heard a gap over it.
WITH reached AS (
    SELECT h.grp, h.life, max(h.mark) AS mark FROM heard h JOIN quiet q USING (grp, life)
    WHERE h.sender = h.life AND h.index < q.until GROUP BY ALL
)
SELECT s.grp, CASE WHEN s.number <= coalesce(r.mark, 0) THEN 'kept' ELSE 'broken' END AS outcome
FROM sent s JOIN quiet q USING (grp, life) LEFT JOIN reached r USING (grp, life)
WHERE s.index < q.until
UNION ALL
SELECT grp, 'broken' FROM gapped WHERE sender = life AND NOT in_merge;
