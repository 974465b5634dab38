-- The share of the messages that members missed, between members at quiet of which the later one had the other in its
-- first view and that never came back to one another, is tested against the bound of the start records.
WITH bound AS (
    SELECT grp, life, coalesce(max(map_extract(gauges, 'epsilon_ppm')[1]), 0) / 1e6 AS p
    FROM event WHERE kind = 'start' GROUP BY ALL
), first_view AS (
    SELECT grp, life, arg_min(members, index) AS members FROM installed GROUP BY ALL
), begun AS (
    SELECT grp, life, max(index) AS index, arg_max(digest, index) AS digest FROM given GROUP BY ALL
), appears AS (
    SELECT i.grp, i.life, i.index, o.address,
           coalesce(list_contains(i.members, o.address), false) AS inside,
           lag(coalesce(list_contains(i.members, o.address), false), 1, false)
               OVER (PARTITION BY i.grp, i.life, o.address ORDER BY i.index) AS before
    FROM installed i JOIN life o USING (grp)
), back AS (
    SELECT grp, life, address FROM appears WHERE inside AND NOT before GROUP BY ALL HAVING count(*) > 1
), pair AS (
    SELECT r.grp, r.side, r.life, o.life AS sender, ra.address, oa.address AS other, s.marked, r.until AS r_until,
           o.until AS o_until
    FROM quiet r JOIN quiet o ON o.grp = r.grp AND o.side = r.side AND o.life <> r.life
    JOIN side s ON s.grp = r.grp AND s.side = r.side
    JOIN life ra ON ra.grp = r.grp AND ra.life = r.life
    JOIN life oa ON oa.grp = o.grp AND oa.life = o.life
), measured AS (
    SELECT p.*,
        coalesce((SELECT map_extract(b.digest, p.other)[1] FROM begun b WHERE b.grp = p.grp AND b.life = p.life), 0) AS start,
        (SELECT max(s.number) FROM sent s WHERE s.grp = p.grp AND s.life = p.sender AND s.index < p.o_until) AS sent,
        (SELECT max(h.mark) FROM heard h WHERE h.grp = p.grp AND h.life = p.life AND h.sender = p.sender
            AND h.index < p.r_until) AS reached,
        (SELECT count(*) FROM delivered d WHERE d.grp = p.grp AND d.life = p.life AND d.sender = p.sender
            AND d.index < p.r_until
            AND d.index > coalesce((SELECT b.index FROM begun b WHERE b.grp = p.grp AND b.life = p.life), -1)) AS got
    FROM pair p
), facts AS (
    SELECT m.grp, m.side,
        greatest(0, CASE WHEN marked THEN sent ELSE least(sent, coalesce(reached, start)) END - start) AS wanted, got,
        (list_contains(f.members, m.other) OR list_contains(g.members, m.address))
        AND (m.grp, m.life, m.other) NOT IN (SELECT (grp, life, address) FROM back)
        AND (m.grp, m.sender, m.address) NOT IN (SELECT (grp, life, address) FROM back) AS together
    FROM measured m JOIN first_view f ON f.grp = m.grp AND f.life = m.life
    JOIN first_view g ON g.grp = m.grp AND g.life = m.sender
    WHERE sent IS NOT NULL
), sums AS (
    SELECT grp, side, CAST(sum(wanted) AS BIGINT) AS n, CAST(sum(greatest(0, wanted - got)) AS BIGINT) AS k,
        (SELECT max(p) FROM bound b JOIN quiet q USING (grp, life) WHERE q.grp = f.grp AND q.side = f.side) AS p
    FROM facts f WHERE together GROUP BY ALL
)
SELECT grp, CASE
    WHEN n = 0 OR coalesce(p, 0) <= 0 OR p >= 1 OR n * ln(p) >= ln(1e-9) THEN 'skipped'
    WHEN k > n * p AND list_sum([
        exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * ln(p) + (n - i) * ln(1 - p)) FOR i IN range(k, n + 1)
    ]) < 1e-9 THEN 'broken' ELSE 'kept' END AS outcome
FROM sums;
