-- No send or delivery before the first view.
SELECT r.grp, CASE WHEN r.index > f.index THEN 'kept' ELSE 'broken' END AS outcome
FROM run r LEFT JOIN (SELECT grp, life, min(index) AS index FROM installed GROUP BY ALL) f USING (grp, life)
WHERE r.kind IN (0, 1);
