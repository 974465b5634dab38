-- What votes let be purged in a view was delivered by every member of that view, the dead included.
WITH purged AS (
    SELECT v.grp, v.view, n.life AS stream, max(v.entry.value) AS below
    FROM (SELECT grp, view, unnest(map_entries(digest)) AS entry FROM vote WHERE kind = 'purge') v
    JOIN life_name n ON n.grp = v.grp AND n.address = v.entry.key
    GROUP BY ALL
), members AS (
    -- A member alone in its view is compared with nobody.
    SELECT i.grp, i.view, i.life FROM installed i JOIN life l USING (grp, life) WHERE l.complete OR i.left_at IS NOT NULL
    QUALIFY count(*) OVER (PARTITION BY i.grp, i.view) > 1
), runs_of AS (
    SELECT DISTINCT r.grp, r.view, r.stream, r.life, r.seq, r.sender, r.first
    FROM run r JOIN purged p USING (grp, view, stream) WHERE r.kind = 1 AND r.seq < p.below
), anybody AS (
    SELECT DISTINCT grp, view, stream, seq, sender, first FROM runs_of
)
SELECT a.grp, CASE WHEN r.life IS NULL THEN 'broken' ELSE 'kept' END AS outcome
FROM anybody a JOIN members m USING (grp, view)
LEFT JOIN runs_of r
ON r.grp = a.grp AND r.view = a.view AND r.stream = a.stream AND r.life = m.life AND r.seq = a.seq
   AND r.sender = a.sender AND r.first = a.first;
