-- Of two members that install a view, each names the other as coming with it exactly if both came from the same view;
-- a joiner comes alone and names itself only.
WITH pairs AS (
    SELECT a.grp, list_contains(a.transitional, b.address) AS named,
           (a.life = b.life OR coalesce(a.previous = b.previous, false)) AS together
    FROM installed a JOIN installed b USING (grp, view)
)
SELECT grp, CASE WHEN named = together THEN 'kept' ELSE 'broken' END AS outcome FROM pairs
UNION ALL
SELECT grp, CASE WHEN transitional = [address] THEN 'kept' ELSE 'broken' END FROM installed WHERE previous IS NULL
UNION ALL
-- It names members of the view alone.
SELECT grp, CASE WHEN len(list_filter(transitional, lambda one: NOT list_contains(members, one))) = 0 THEN 'kept'
                 ELSE 'broken' END
FROM installed
UNION ALL
-- The view that it says it came from is the one that its journal has before.
SELECT grp, CASE WHEN named IS NOT DISTINCT FROM previous THEN 'kept' ELSE 'broken' END FROM installed;
