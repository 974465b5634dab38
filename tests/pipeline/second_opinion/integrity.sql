-- What is delivered was sent by its origin, with the same body.
SELECT d.grp,
       CASE WHEN o.life IS NULL THEN 'skipped'
            WHEN s.first IS NULL THEN CASE WHEN o.whole THEN 'broken' ELSE 'skipped' END
            WHEN (s.count, s.bytes, s.checksum) = (d.count, d.bytes, d.checksum) THEN 'kept'
            ELSE 'broken' END AS outcome
FROM run d
LEFT JOIN life o ON o.grp = d.grp AND o.life = d.sender
LEFT JOIN run s
ON s.grp = d.grp AND s.life = d.sender AND s.kind = d.kind - 1 AND s.first = d.first AND s.peer IS NOT DISTINCT FROM d.peer
WHERE d.kind IN (1, 3);
