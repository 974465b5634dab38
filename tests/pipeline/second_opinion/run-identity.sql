-- (origin, incarnation, peer, first) has one count, size and checksum everywhere, and one record of its sending.
SELECT grp, CASE WHEN count(DISTINCT (count, bytes, checksum)) = 1 AND count(*) FILTER (kind IN (0, 2)) <= 1 THEN 'kept' ELSE 'broken' END AS outcome
FROM run WHERE kind < 4 GROUP BY grp, sender, peer, first;
