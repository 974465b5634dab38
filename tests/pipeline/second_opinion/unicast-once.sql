-- Every unicast message at most once at its receiver.
SELECT grp, CASE WHEN count(*) = 1 THEN 'kept' ELSE 'broken' END AS outcome
FROM (SELECT grp, life, sender, unnest(range(first, first + count)) AS number FROM run WHERE kind = 3)
GROUP BY grp, life, sender, number;
