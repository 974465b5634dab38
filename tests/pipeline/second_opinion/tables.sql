-- What every promise is judged from: the records that can be trusted, lives, views, linked sets, quiet.
-- The views runs, events, votes, names and manifest are the tables of a history; "group" is called grp below.

CREATE TEMP TABLE life AS
SELECT "group" AS grp, life, any_value(address) AS address, any_value(profile) AS profile,
       coalesce(min(wrong_index), max(last_index) + 1, 0) AS ending,
       bool_and(wrong_index IS NULL AND damage IS NULL) AS whole
FROM manifest GROUP BY ALL;

CREATE TEMP TABLE life_name AS
SELECT DISTINCT "group" AS grp, key AS life, name AS address FROM names WHERE kind = 'life';

CREATE TEMP TABLE run AS
SELECT r."group" AS grp, r.* EXCLUDE ("group", day), l.whole FROM runs r JOIN life l ON l.grp = r."group" AND l.life = r.life
WHERE r.index < l.ending;

CREATE TEMP TABLE event AS
SELECT e."group" AS grp, e.* EXCLUDE ("group", day) FROM events e JOIN life l ON l.grp = e."group" AND l.life = e.life
WHERE e.index < l.ending;

CREATE TEMP TABLE vote AS
SELECT v."group" AS grp, v.* EXCLUDE ("group", day) FROM votes v JOIN life l ON l.grp = v."group" AND l.life = v.life
WHERE v.index < l.ending;

-- A view at a member that installed it, with those before and after it in its journal; `named` is the one that the
-- record names as the one before.
CREATE TEMP TABLE installed AS
SELECT e.grp, e.life, l.address, e.index, e.mono_us, e.view, e.view_number, e.view_creator, lag(e.view) OVER mine AS previous,
       e.previous AS named, e.members,
       e.transitional, e.subgroups, e.digest,
       lead(e.index) OVER mine AS left_at,
       lead(e.view) OVER mine AS next
FROM event e JOIN life l USING (grp, life) WHERE e.kind = 'view'
WINDOW mine AS (PARTITION BY e.grp, e.life ORDER BY e.index);

-- A journal has ended if it says so, if a mark says that its member was killed, or if one that shared the last view which
-- it has is in a view without it at last.  Another one may be the copy of a journal that goes on; so may one whose
-- member came back: one that shared its last view was in a view without it, and later in one with it.
CREATE TEMP TABLE ended AS
WITH latest AS (
    SELECT grp, life, address, view, members FROM installed
    QUALIFY row_number() OVER (PARTITION BY grp, life ORDER BY index DESC) = 1
), back AS (
    SELECT DISTINCT a.grp, a.life FROM latest a
    JOIN installed s ON s.grp = a.grp AND s.view = a.view AND s.life <> a.life
    JOIN installed w ON w.grp = s.grp AND w.life = s.life AND w.index > s.index AND NOT list_contains(w.members, a.address)
    JOIN installed y ON y.grp = s.grp AND y.life = s.life AND y.index > w.index AND list_contains(y.members, a.address)
)
SELECT grp, life FROM event WHERE kind IN ('stop', 'quiet')
UNION
SELECT l.grp, l.life FROM life l JOIN (
    SELECT grp, unnest(members) AS address FROM event
    WHERE kind = 'fault' AND regexp_matches(coalesce(reason, ''), 'kill|crash', 'i')
) m USING (grp, address)
UNION
SELECT a.grp, a.life FROM latest a JOIN installed s ON s.grp = a.grp AND s.view = a.view AND s.life <> a.life
JOIN latest b ON b.grp = s.grp AND b.life = s.life
WHERE NOT list_contains(b.members, a.address) AND (a.grp, a.life) NOT IN (SELECT (grp, life) FROM back);

ALTER TABLE life ADD COLUMN complete BOOLEAN;
UPDATE life SET complete = whole AND (grp, life) IN (SELECT (grp, life) FROM ended);

-- The profile of a group is that of its members; a stranger with another one that was refused does not count.
CREATE TEMP TABLE profile AS
SELECT grp, mode(profile ORDER BY profile) FILTER (has_view OR NOT any_view) AS profile
FROM (SELECT *, bool_or(has_view) OVER (PARTITION BY grp) AS any_view
      FROM (SELECT *, (grp, life) IN (SELECT (grp, life) FROM installed) AS has_view FROM life))
GROUP BY grp;

-- Lives that share a view, or are joined by others that do; with those whose journal is missing.
CREATE TEMP TABLE linked AS
WITH RECURSIVE named AS (
    SELECT DISTINCT i.grp, i.life AS a, n.life AS b
    FROM (SELECT grp, life, unnest(members) AS address FROM installed) i JOIN life_name n USING (grp, address)
), both_ways AS (
    SELECT grp, a, b FROM named UNION SELECT grp, b, a FROM named UNION SELECT grp, life, life FROM life
), reached(grp, a, b) AS (
    SELECT grp, a, b FROM both_ways
    UNION
    SELECT r.grp, r.a, w.b FROM reached r JOIN both_ways w ON w.grp = r.grp AND w.a = r.b
)
SELECT grp, a AS life, min(b) AS side FROM reached GROUP BY ALL;

-- A process without a journal that sent nothing has no key: views alone name it.
CREATE TEMP TABLE nameless AS
SELECT DISTINCT grp, life FROM (SELECT grp, life, unnest(members) AS address FROM installed)
ANTI JOIN life USING (grp, address);

-- For each linked set: whether anybody marked anything, and whether each journal is there, whole and has ended.
CREATE TEMP TABLE side AS
SELECT k.grp, k.side,
       bool_or(coalesce(m.marks > 0, false)) AS marked,
       bool_and(coalesce(l.complete, false) AND (k.grp, k.life) NOT IN (SELECT (grp, life) FROM nameless)) AS complete
FROM linked k LEFT JOIN life l USING (grp, life)
LEFT JOIN (SELECT grp, life, count(*) AS marks FROM event WHERE kind IN ('fault', 'heal', 'quiet') GROUP BY ALL) m
USING (grp, life)
GROUP BY ALL;

CREATE TEMP TABLE quiet AS
WITH marks AS (
    SELECT e.grp, e.life, max(e.index) AS since
    FROM event e JOIN linked k USING (grp, life) JOIN side s USING (grp, side)
    WHERE s.marked AND e.kind = 'quiet' GROUP BY ALL
), gauged AS (
    SELECT *, last_value(CASE WHEN kind = 'stats' THEN coalesce(list_max(map_values(gauges)), 0) = 0 END IGNORE NULLS)
              OVER (PARTITION BY grp, life ORDER BY index) AS settled
    FROM event WHERE kind IN ('stats', 'leave')
), leaves AS (
    SELECT e.grp, e.life, min(e.index) AS since
    FROM gauged e JOIN linked k USING (grp, life) JOIN side s USING (grp, side)
    WHERE NOT s.marked AND e.kind = 'leave' AND e.settled GROUP BY ALL
), both_kinds AS (
    SELECT grp, life, since, since AS until FROM marks
    UNION ALL
    SELECT grp, life, since, l.ending FROM leaves JOIN life l USING (grp, life)
)
SELECT q.grp, q.life, k.side, q.since, q.until,
       (SELECT arg_max(i.view, i.index) FROM installed i WHERE i.grp = q.grp AND i.life = q.life AND i.index < q.until)
       AS view
FROM both_kinds q JOIN linked k USING (grp, life);

-- Every message that a member delivered, and how it came to it the first time.
CREATE TEMP TABLE delivered AS
SELECT grp, life, index, view, sender, stream, seq, unnest(range(first, first + count)) AS number
FROM run WHERE kind = 1;

CREATE TEMP TABLE sent AS
SELECT grp, life, index, view, unnest(range(first, first + count)) AS number FROM run WHERE kind = 0;

CREATE TEMP TABLE gapped AS
SELECT e.grp, e.life, e.index, e.sender, e.first, e.count, i.subgroups IS NOT NULL AS in_merge
FROM event e LEFT JOIN installed i
ON i.grp = e.grp AND i.life = e.life AND i.index < e.index AND coalesce(i.left_at > e.index, true)
WHERE e.kind = 'gap';

-- How far a member has heard a sender, in the order of its journal: by a delivery, a gap or a given state.
CREATE TEMP TABLE heard AS
SELECT grp, life, index, sender, first + count - 1 AS mark, false AS given FROM run WHERE kind = 1
UNION ALL
SELECT grp, life, index, sender, first + count - 1, false FROM gapped
UNION ALL
SELECT d.grp, d.life, d.index, n.life, d.entry.value, true
FROM (SELECT grp, life, index, unnest(map_entries(digest)) AS entry FROM installed WHERE digest IS NOT NULL) d
JOIN life_name n ON n.grp = d.grp AND n.address = d.entry.key;

-- The last view with a given state before each place would be asked for often: where each member was given one.
CREATE TEMP TABLE given AS SELECT grp, life, index, digest FROM installed WHERE digest IS NOT NULL;
