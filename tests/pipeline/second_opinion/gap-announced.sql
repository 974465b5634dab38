-- What a member has from a sender grows by deliveries and by announced gaps: none of the two begins beyond it.
WITH steps AS (
    SELECT grp, life, index, sender, first, count, true AS delivered FROM run WHERE kind = 1
    UNION ALL
    SELECT grp, life, index, sender, first, count, false FROM gapped
), placed AS (
    SELECT s.*,
           (SELECT max(g.index) FROM given g WHERE g.grp = s.grp AND g.life = s.life AND g.index < s.index) AS begun
    FROM steps s JOIN profile p USING (grp) WHERE p.profile = 'gossip'
), reached AS (
    SELECT f.*,
           max(f.first + f.count) OVER (
               PARTITION BY f.grp, f.life, f.sender, f.begun ORDER BY f.index
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS before,
           CASE WHEN f.begun IS NULL THEN NULL ELSE coalesce(m.mark, 0) + 1 END AS start
    FROM placed f LEFT JOIN heard m
    ON m.given AND m.grp = f.grp AND m.life = f.life AND m.index = f.begun AND m.sender = f.sender
)
SELECT grp, CASE WHEN first > greatest(before, start) THEN 'broken' ELSE 'kept' END AS outcome
FROM reached WHERE delivered OR first > greatest(before, start);
