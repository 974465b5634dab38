-- At most once per member, the state it was given included; what it delivered before the view of its last given state
-- does not count.
WITH last_given AS (
    SELECT grp, life, max(index) AS index FROM given GROUP BY ALL
), since AS (
    SELECT d.* FROM delivered d LEFT JOIN last_given g USING (grp, life) WHERE coalesce(d.index > g.index, true)
), covered AS (
    SELECT grp, life, sender, mark FROM heard JOIN last_given USING (grp, life, index) WHERE given
)
SELECT s.grp, CASE WHEN count(*) > 1 OR any_value(c.mark) >= s.number THEN 'broken' ELSE 'kept' END AS outcome
FROM since s LEFT JOIN covered c USING (grp, life, sender)
GROUP BY s.grp, s.life, s.sender, s.number;
