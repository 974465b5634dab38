-- After healing: one view and everything delivered, the view within the bound of heal, by each member's own clock.
-- That there is one view cannot be said where a member of it may have reached quiet elsewhere, because its journal is
-- missing, open or ends early; what is wrong all the same, and whether a member has heard what another sent, can be said.
WITH healed AS (
    SELECT q.*, h.mono_us AS healed_us, map_extract(b.gauges, 'bound_us')[1] AS bound_us
    FROM quiet q JOIN side s USING (grp, side)
    JOIN (SELECT grp, life, max(mono_us) AS mono_us FROM event WHERE kind = 'heal' GROUP BY ALL) h USING (grp, life)
    LEFT JOIN (SELECT grp, life, any_value(gauges) AS gauges FROM event WHERE kind = 'start' GROUP BY ALL) b
    USING (grp, life)
    WHERE s.marked
), sides AS (
    SELECT grp, side, count(DISTINCT view) AS views FROM quiet GROUP BY ALL
), hidden AS (
    SELECT DISTINCT grp, view FROM (SELECT grp, view, unnest(members) AS address FROM installed)
    LEFT JOIN life l USING (grp, address)
    WHERE NOT coalesce(l.complete, false) AND (grp, coalesce(l.life, 0)) NOT IN (SELECT (grp, life) FROM quiet)
), sends AS (
    SELECT s.grp, q.side, s.life AS sender, max(s.number) AS highest
    FROM sent s JOIN quiet q USING (grp, life) WHERE s.index < q.until GROUP BY ALL
), hears AS (
    SELECT q.grp, q.life, h.sender, max(h.mark) AS highest
    FROM quiet q JOIN heard h USING (grp, life) WHERE h.index < q.until GROUP BY ALL
)
SELECT h.grp,
       CASE WHEN i.view IS NULL OR s.views > 1 OR i.mono_us > h.healed_us + h.bound_us THEN 'broken'
            WHEN (h.grp, h.view) IN (SELECT (grp, view) FROM hidden) THEN 'skipped'
            ELSE 'kept' END AS outcome
FROM healed h JOIN sides s USING (grp, side) LEFT JOIN installed i USING (grp, life, view)
UNION ALL
SELECT h.grp, CASE WHEN coalesce(r.highest, 0) >= s.highest THEN 'kept' ELSE 'broken' END
FROM healed h JOIN sends s USING (grp, side) LEFT JOIN hears r USING (grp, life, sender);
