-- At most once per member, the state it was given included.  A given state begins anew: what was delivered before its
-- view does not count against what comes after it, and is judged by itself.
WITH since AS (
    SELECT d.*, g.index AS anew
    FROM delivered d ASOF LEFT JOIN given g ON g.grp = d.grp AND g.life = d.life AND g.index < d.index
), covered AS (
    SELECT grp, life, index AS anew, sender, mark FROM heard WHERE given
)
SELECT s.grp, CASE WHEN count(*) > 1 OR any_value(c.mark) >= s.number THEN 'broken' ELSE 'kept' END AS outcome
FROM since s LEFT JOIN covered c USING (grp, life, sender, anew)
GROUP BY s.grp, s.life, s.anew, s.sender, s.number;
