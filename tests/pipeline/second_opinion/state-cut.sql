-- The state given is exactly what was delivered before the view it belongs to; what is taken is what was given, and
-- what the taker's view was given with.  A giver that is new in that view itself gives what it was given.
CREATE OR REPLACE TEMP MACRO filled(digest) AS
    list_sort(list_filter(map_entries(digest), lambda entry: entry.value <> 0));

WITH gives AS (
    SELECT g.grp, g.life, g.view, g.peer, g.index, g.bytes, g.checksum, filled(g.digest) AS digest, i.index AS began,
           (SELECT max(x.index) FROM given x WHERE x.grp = g.grp AND x.life = g.life AND x.index <= i.index) AS anew
    FROM event g JOIN installed i USING (grp, life, view) WHERE g.kind = 'state_get'
), marks AS (
    SELECT g.grp, g.life, g.index, n.address AS key, max(h.mark) AS value
    FROM gives g JOIN heard h
    ON h.grp = g.grp AND h.life = g.life AND h.index >= coalesce(g.anew, 0) AND (h.index < g.began OR h.given)
       AND h.index <= g.began
    JOIN life_name n ON n.grp = h.grp AND n.life = h.sender
    WHERE h.mark <> 0
    GROUP BY ALL
), had AS (
    SELECT grp, life, index, list_sort(list({'key': key, 'value': value})) AS digest FROM marks GROUP BY grp, life, index
), takes AS (
    SELECT s.grp, s.life, l.address, s.view, s.peer, s.bytes, s.checksum, filled(s.digest) AS digest,
           filled(i.digest) AS began_with
    FROM event s JOIN life l USING (grp, life) JOIN installed i USING (grp, life, view) WHERE s.kind = 'state_set'
), compared AS (
    SELECT t.grp, t.life, t.view, t.peer, any_value(o.complete) AS complete, count(g.life) AS gives, t.digest, t.began_with,
           bool_or((t.digest, t.bytes, t.checksum) = (g.digest, g.bytes, g.checksum)) AS same
    FROM takes t JOIN life_name n ON n.grp = t.grp AND n.address = t.peer
    LEFT JOIN life o ON o.grp = t.grp AND o.life = n.life
    LEFT JOIN gives g ON g.grp = t.grp AND g.life = n.life AND g.view = t.view AND g.peer = t.address
    GROUP BY ALL
)
SELECT g.grp, CASE WHEN g.digest = coalesce(h.digest, []) THEN 'kept' ELSE 'broken' END AS outcome
FROM gives g LEFT JOIN had h USING (grp, life, index)
UNION ALL
SELECT grp,
       CASE WHEN digest <> began_with THEN 'broken'
            WHEN gives > 0 THEN CASE WHEN same THEN 'kept' ELSE 'broken' END
            WHEN coalesce(complete, false) THEN 'broken'
            ELSE 'skipped' END
FROM compared;
