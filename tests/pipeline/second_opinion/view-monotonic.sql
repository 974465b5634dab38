-- Ids rise at a member, compared as (number, creator's name, creator's incarnation).
WITH ids AS (
    SELECT grp, life, index, (view_number, split_part(view_creator, '@', 1), split_part(view_creator, '@', 2)) AS id
    FROM installed
)
SELECT grp, CASE WHEN before IS NULL OR before < id THEN 'kept' ELSE 'broken' END AS outcome
FROM (SELECT *, lag(id) OVER (PARTITION BY grp, life ORDER BY index) AS before FROM ids)
UNION ALL
-- Each view names the one that the journal installed before it; the first one names none.
SELECT grp, CASE WHEN previous IS NOT DISTINCT FROM lag(view) OVER (PARTITION BY grp, life ORDER BY index) THEN 'kept'
                 ELSE 'broken' END
FROM installed;
