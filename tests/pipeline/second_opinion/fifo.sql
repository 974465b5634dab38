-- Messages of one sender in the order sent, without holes unless a gap was announced, which is right in a merged view
-- (in uniform never); a view with a given state starts the counting anew.
WITH happened AS (
    SELECT grp, life, index, sender, first, count, 'deliver' AS what, false AS in_merge FROM run WHERE kind = 1
    UNION ALL
    SELECT grp, life, index, sender, first, count, 'gap', in_merge FROM gapped
), numbered AS (
    SELECT h.*, p.profile,
           (SELECT max(g.index) FROM given g WHERE g.grp = h.grp AND g.life = h.life AND g.index < h.index) AS anew
    FROM happened h JOIN profile p USING (grp)
), counted AS (
    SELECT n.*,
           greatest(coalesce(max(n.first + n.count) OVER (
               PARTITION BY n.grp, n.life, n.sender, n.anew ORDER BY n.index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ), 0), coalesce(m.mark + 1, 0)) AS known
    FROM numbered n LEFT JOIN heard m
    ON m.given AND m.grp = n.grp AND m.life = n.life AND m.index = n.anew AND m.sender = n.sender
)
SELECT grp,
       CASE WHEN known = 0 AND profile = 'gossip' AND anew IS NULL THEN 'kept'
            WHEN what = 'deliver' AND first = greatest(known, 1) THEN 'kept'
            WHEN what = 'gap' AND first <= greatest(known, 1)
                 AND (profile = 'gossip' OR (in_merge AND profile NOT LIKE 'uniform%')) THEN 'kept'
            ELSE 'broken' END AS outcome
FROM counted;
