-- The share of the messages that members missed is tested against the bound of the start records.  A message counts if its
-- sender had the receiver in its view when it sent, and if neither of the two came back into a view of the other.
WITH bound AS (
    SELECT grp, life, coalesce(max(map_extract(gauges, 'epsilon_ppm')[1]), 0) / 1e6 AS p
    FROM event WHERE kind = 'start' GROUP BY ALL
), begun AS (
    SELECT grp, life, index, digest FROM given
    QUALIFY row_number() OVER (PARTITION BY grp, life ORDER BY index DESC) = 1
), appears AS (
    SELECT i.grp, i.life, i.index, o.address, list_contains(i.members, o.address) AS inside,
           lag(list_contains(i.members, o.address), 1, false)
               OVER (PARTITION BY i.grp, i.life, o.address ORDER BY i.index) AS before
    FROM installed i JOIN life o USING (grp)
), came AS (
    SELECT grp, life, address, min(index) AS since, count(*) AS times FROM appears WHERE inside AND NOT before GROUP BY ALL
), pair AS (
    SELECT r.grp, r.side, r.life, o.life AS sender, s.marked, r.until, o.until AS sends_until,
           coalesce(map_extract(b.digest, oa.address)[1], 0) AS start, c.since
    FROM quiet r JOIN quiet o ON o.grp = r.grp AND o.side = r.side AND o.life <> r.life
    JOIN side s ON s.grp = r.grp AND s.side = r.side
    JOIN life ra ON ra.grp = r.grp AND ra.life = r.life
    JOIN life oa ON oa.grp = o.grp AND oa.life = o.life
    LEFT JOIN begun b ON b.grp = r.grp AND b.life = r.life
    LEFT JOIN came c ON c.grp = o.grp AND c.life = o.life AND c.address = ra.address
    WHERE coalesce(c.times, 0) < 2 AND NOT EXISTS (
        SELECT 1 FROM came d WHERE d.grp = r.grp AND d.life = r.life AND d.address = oa.address AND d.times > 1
    )
), wanted AS (
    SELECT p.*, s.number FROM pair p JOIN sent s ON s.grp = p.grp AND s.life = p.sender
    WHERE s.index < p.sends_until AND s.number > p.start AND (p.since IS NULL OR s.index > p.since)
    AND (p.marked OR s.number <= (SELECT max(h.mark) FROM heard h
        WHERE h.grp = p.grp AND h.life = p.life AND h.sender = p.sender AND h.index < p.until))
), had AS (
    SELECT DISTINCT grp, life, sender, number, true AS here FROM delivered
), sums AS (
    SELECT w.grp, w.side, count(*) AS n, count(*) FILTER (h.here IS NULL) AS k,
           (SELECT max(b.p) FROM bound b JOIN quiet q USING (grp, life) WHERE q.grp = w.grp AND q.side = w.side) AS p
    FROM wanted w LEFT JOIN had h USING (grp, life, sender, number) GROUP BY ALL
)
SELECT grp, CASE
    WHEN coalesce(p, 0) <= 0 OR p >= 1 OR n * ln(p) >= ln(1e-9) THEN 'skipped'
    WHEN k > n * p AND list_sum([
        exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * ln(p) + (n - i) * ln(1 - p)) FOR i IN range(k, n + 1)
    ]) < 1e-9 THEN 'broken' ELSE 'kept' END AS outcome
FROM sums;
