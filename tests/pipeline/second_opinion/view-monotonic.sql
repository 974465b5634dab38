-- Ids rise at a member, compared as (number, creator's name, creator's incarnation).
WITH ids AS (
    SELECT grp, life, index, (view_number, split_part(view_creator, '@', 1), split_part(view_creator, '@', 2)) AS id
    FROM installed
)
SELECT grp, CASE WHEN before IS NULL OR before < id THEN 'kept' ELSE 'broken' END AS outcome
FROM (SELECT *, lag(id) OVER (PARTITION BY grp, life ORDER BY index) AS before FROM ids);
