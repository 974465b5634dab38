-- One id, one ordered list everywhere.
SELECT grp, CASE WHEN count(DISTINCT members) = 1 THEN 'kept' ELSE 'broken' END AS outcome
FROM installed GROUP BY grp, view;
