-- What is delivered was sent by its origin, with the same body.  An open journal may lack the last sends.
WITH sends AS (
    SELECT DISTINCT grp, life AS sender, kind + 1 AS kind, peer, first, list((count, bytes, checksum)) AS bodies
    FROM run WHERE kind IN (0, 2) GROUP BY ALL
), highest AS (
    SELECT grp, life AS sender, max(first) AS first FROM run WHERE kind = 0 GROUP BY ALL
)
SELECT d.grp,
       CASE WHEN o.life IS NULL THEN 'skipped'
            WHEN s.first IS NULL THEN
                CASE WHEN o.complete OR (o.whole AND d.kind = 1 AND d.first < h.first) THEN 'broken' ELSE 'skipped' END
            WHEN list_contains(s.bodies, (d.count, d.bytes, d.checksum)) THEN 'kept'
            ELSE 'broken' END AS outcome
FROM run d
LEFT JOIN life o ON o.grp = d.grp AND o.life = d.sender
LEFT JOIN highest h ON h.grp = d.grp AND h.sender = d.sender
LEFT JOIN sends s
ON s.grp = d.grp AND s.sender = d.sender AND s.kind = d.kind AND s.first = d.first
   AND s.peer IS NOT DISTINCT FROM d.peer
WHERE d.kind IN (1, 3);
