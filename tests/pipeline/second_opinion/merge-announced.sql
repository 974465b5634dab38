-- A merged view begins with gaps: of each origin that the merge names, exactly the numbers from the first one that the
-- member had not heard to the mark of the merge.  Members delivered each of these numbers.  The marks of all are equal.
-- A gap names members of one subgroup, perhaps none; itself a member names only if it begins with a given state.  Those
-- that are named and install the view, too, have delivered each of the numbers.
WITH step AS (
    SELECT grp, life, next_number AS view_number, next_creator AS view_creator,
           map_entries(arg_max(digest, index)) AS marks
    FROM event WHERE kind = 'merge' AND stage = 'installed' GROUP BY ALL
), merged AS (
    SELECT i.grp, i.life, i.address, i.view, i.index, i.subgroups, s.complete, i.digest IS NOT NULL AS fresh,
           list_sort(list_filter(t.marks, lambda mark: mark.value > 0)) AS marks,
           (SELECT coalesce(max(g.index), 0) FROM given g WHERE g.grp = i.grp AND g.life = i.life AND g.index <= i.index)
           AS anew,
           (SELECT min(r.index) FROM run r WHERE r.grp = i.grp AND r.life = i.life AND r.view = i.view AND r.kind = 1)
           AS began
    FROM installed i JOIN linked k USING (grp, life) JOIN side s USING (grp, side)
    LEFT JOIN step t USING (grp, life, view_number, view_creator)
    WHERE len(i.subgroups) > 0
), alike AS (
    SELECT grp, view, count(DISTINCT marks) <= 1 AS alike FROM merged WHERE marks IS NOT NULL GROUP BY ALL
), mark AS (
    SELECT m.grp, m.life, m.view, n.life AS sender, m.entry.value AS mark
    FROM (SELECT grp, life, view, unnest(marks) AS entry FROM merged) m
    JOIN life_name n ON n.grp = m.grp AND n.address = m.entry.key
), named AS (
    SELECT e.grp, e.life, e.index, e.sender, e.first, e.count, n.life AS who
    FROM (SELECT *, unnest(members) AS one FROM event WHERE kind = 'gap') e
    JOIN life_name n ON n.grp = e.grp AND n.address = e.one
    JOIN installed i ON i.grp = e.grp AND i.life = n.life AND i.view = e.view
), boast AS (
    SELECT n.life, n.index
    FROM named n LEFT JOIN delivered d ON d.grp = n.grp AND d.life = n.who AND d.sender = n.sender
                                      AND d.number BETWEEN n.first AND n.first + n.count - 1
    GROUP BY n.grp, n.life, n.index, n.who, n.count HAVING count(DISTINCT d.number) < n.count
), gap AS (
    SELECT m.grp, m.life, m.view, e.sender, count(*) AS gaps, min(e.first) AS first, max(e.first + e.count - 1) AS last,
           sum(e.count) AS messages,
           bool_and(coalesce(
               len(list_filter(m.subgroups, lambda side: list_has_all(side, e.members))) > 0
               AND (m.fresh OR NOT list_contains(e.members, m.address)), true)) AS named,
           bool_and(coalesce(e.index < m.began, true)) AS in_time,
           bool_or((e.life, e.index) IN (SELECT (life, index) FROM boast)) AS boasts
    FROM merged m JOIN event e ON e.grp = m.grp AND e.life = m.life AND e.view = m.view AND e.kind = 'gap'
    GROUP BY ALL
), origin AS (
    SELECT grp, life, view, sender, mark, coalesce(gaps, 0) AS gaps, first, last, messages, named, in_time,
           boasts
    FROM mark FULL JOIN gap USING (grp, life, view, sender)
), placed AS (
    SELECT o.*, m.complete,
           coalesce((SELECT max(h.mark) FROM heard h
                     WHERE h.grp = o.grp AND h.life = o.life AND h.sender = o.sender
                       AND h.index BETWEEN m.anew AND m.index), 0) AS own,
           (SELECT count(DISTINCT d.number) FROM delivered d
            WHERE d.grp = o.grp AND d.sender = o.sender AND d.number BETWEEN o.first AND o.last) AS covered,
           (SELECT count(*) FROM run r
            WHERE r.grp = o.grp AND r.sender = o.sender AND r.kind = 1
              AND ((r.first < o.first AND r.first + r.count > o.first)
                   OR (r.first <= o.last AND r.first + r.count - 1 > o.last))) AS beyond
    FROM origin o JOIN merged m USING (grp, life, view) WHERE m.marks IS NOT NULL
), judged AS (
    SELECT *,
           coalesce(own > mark, false)
           OR (gaps = 0 AND coalesce(own < mark, false))
           OR (gaps > 0 AND (
               mark IS NULL OR own >= mark OR first <> own + 1 OR last <> mark OR messages <> mark - own
               OR NOT named OR NOT in_time OR boasts
               OR beyond > 0 OR (covered < last - first + 1 AND complete)
           )) AS wrong,
           gaps > 0 AND covered < last - first + 1 AND NOT complete AS unsure
    FROM placed
), told AS (
    SELECT grp, life, view, bool_or(wrong) AS wrong, bool_or(unsure) AS unsure FROM judged GROUP BY ALL
)
SELECT m.grp,
       CASE WHEN m.marks IS NULL THEN 'skipped'
            WHEN coalesce(t.wrong, false) OR NOT a.alike THEN 'broken'
            WHEN coalesce(t.unsure, false) THEN 'skipped'
            ELSE 'kept' END AS outcome
FROM merged m LEFT JOIN alike a USING (grp, view) LEFT JOIN told t USING (grp, life, view);
