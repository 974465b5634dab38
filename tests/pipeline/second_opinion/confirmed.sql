-- A member that waits for a state delivers messages that its program does not have yet.  The state that ends the wait
-- has all of them, or skips them with a gap of its view.  Without a state the program goes on right behind the first
-- state that was awaited, and a state that it gives on has at most that state and what was delivered and announced since.
-- A state that replaces another one after a merge may lack messages that its taker has delivered: those that its giver
-- announced as gaps since it took a state itself, or recorded as lacking in that one.  The taker records them, too.
CREATE OR REPLACE TEMP TABLE finish AS
WITH told AS (
    SELECT e.grp, e.life, e.index, e.kind, e.view, e.digest, i.index AS began
    FROM event e JOIN installed i USING (grp, life, view)
    WHERE e.kind IN ('state_set', 'state_lost') AND i.digest IS NOT NULL
)
SELECT *, coalesce(max(began) OVER (PARTITION BY grp, life ORDER BY index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1)
          AS done,
       coalesce(lead(index) OVER (PARTITION BY grp, life ORDER BY index), 9223372036854775807) AS later
FROM told;

CREATE OR REPLACE TEMP TABLE wait AS
SELECT f.grp, f.life, f.index, f.kind, f.view, f.digest, f.began, f.later, min(g.index) AS since,
       arg_min(g.digest, g.index) AS awaited
FROM finish f JOIN given g ON g.grp = f.grp AND g.life = f.life AND g.index > f.done AND g.index <= f.began
GROUP BY ALL HAVING count(*) > 1;

WITH had AS (
    SELECT grp, life, index, sender, mark FROM heard WHERE NOT given
), contents AS (
    SELECT w.grp, w.life, w.index, n.life AS sender, w.entry.value AS mark
    FROM (SELECT grp, life, index, unnest(map_entries(digest)) AS entry FROM wait WHERE kind = 'state_set') w
    JOIN life_name n ON n.grp = w.grp AND n.address = w.entry.key
), lacking AS (
    SELECT DISTINCT w.grp, w.life, w.index
    FROM wait w JOIN had h ON h.grp = w.grp AND h.life = w.life AND h.index >= w.since AND h.index < w.began
    WHERE w.kind = 'state_set'
      AND NOT EXISTS (FROM contents c WHERE c.grp = w.grp AND c.life = w.life AND c.index = w.index
                                        AND c.sender = h.sender AND c.mark >= h.mark)
      AND NOT EXISTS (FROM event e WHERE e.kind = 'gap' AND e.grp = w.grp AND e.life = w.life AND e.view = w.view
                                     AND e.sender = h.sender AND e.first + e.count - 1 >= h.mark)
), gives AS (
    SELECT w.grp, w.life, e.index, w.since, w.awaited, i.index AS began, unnest(map_entries(e.digest)) AS entry
    FROM wait w JOIN event e ON e.grp = w.grp AND e.life = w.life AND e.kind = 'state_get'
                            AND e.index > w.index AND e.index < w.later
    JOIN installed i ON i.grp = e.grp AND i.life = e.life AND i.view = e.view
    WHERE w.kind = 'state_lost'
), claims AS (
    SELECT g.grp, g.life, g.index,
           g.entry.value > greatest(coalesce(g.awaited[g.entry.key], 0), coalesce((
               SELECT max(h.mark) FROM had h WHERE h.grp = g.grp AND h.life = g.life AND h.sender = n.life
                                               AND h.index >= g.since AND h.index < g.began), 0)) AS more
    FROM gives g JOIN life_name n ON n.grp = g.grp AND n.address = g.entry.key
)
, taker AS (
    SELECT f.grp, f.life, f.view, f.index, f.began, n.life AS giver, i.index AS given_at,
           (SELECT min(g.index) FROM given g
            WHERE g.grp = f.grp AND g.life = f.life AND g.index > f.done AND g.index <= f.began) AS since
    FROM finish f JOIN event e USING (grp, life, index) JOIN life_name n ON n.grp = e.grp AND n.address = e.peer
    JOIN installed i ON i.grp = f.grp AND i.life = n.life AND i.view = f.view
    WHERE f.kind = 'state_set'
), replaces AS (
    SELECT t.*, coalesce((SELECT max(b.began) FROM finish b
                          WHERE b.grp = t.grp AND b.life = t.giver AND b.began < t.given_at), -1) AS base
    FROM taker t
    WHERE t.since > (SELECT min(i.index) FROM installed i WHERE i.grp = t.grp AND i.life = t.life)
      AND NOT EXISTS (FROM finish b WHERE b.grp = t.grp AND b.life = t.giver AND b.kind = 'state_lost'
                                      AND b.began < t.given_at)
), without AS (
    SELECT r.grp, r.life, r.index, r.view, r.since, g.sender, unnest(range(g.first, g.first + g.count)) AS number
    FROM replaces r JOIN event g ON g.grp = r.grp AND g.life = r.giver
    WHERE (g.kind = 'gap' AND g.index > r.base AND g.index < r.given_at)
       OR (g.kind = 'lack' AND g.reason = 'set'
           AND g.view = (SELECT b.view FROM finish b WHERE b.grp = r.grp AND b.life = r.giver AND b.began = r.base))
), silent AS (
    SELECT DISTINCT w.grp, w.life, w.index
    FROM without w JOIN delivered d ON d.grp = w.grp AND d.life = w.life AND d.sender = w.sender
                                   AND d.number = w.number AND d.index < w.since
    WHERE NOT EXISTS (FROM event e WHERE e.kind = 'lack' AND e.reason = 'set' AND e.grp = w.grp AND e.life = w.life
                                     AND e.view = w.view AND e.sender = w.sender
                                     AND w.number >= e.first AND w.number < e.first + e.count)
)
SELECT grp, CASE WHEN (grp, life, index) IN (SELECT (grp, life, index) FROM silent) THEN 'broken' ELSE 'kept' END
       AS outcome
FROM replaces
UNION ALL
SELECT w.grp,
       CASE WHEN w.kind = 'state_lost' AND list_sort(list_filter(map_entries(w.digest), lambda one: one.value <> 0))
                                        <> list_sort(list_filter(map_entries(w.awaited), lambda one: one.value <> 0))
                 OR l.index IS NOT NULL THEN 'broken' ELSE 'kept' END AS outcome
FROM wait w LEFT JOIN lacking l USING (grp, life, index)
UNION ALL
SELECT grp, CASE WHEN bool_or(more) THEN 'broken' ELSE 'kept' END FROM claims GROUP BY grp, life, index;
