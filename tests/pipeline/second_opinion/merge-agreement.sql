-- A merged view has one list of subgroups everywhere: two or more parts of its members, each of which came from one
-- view, and its id is above theirs.  Members that leave one view together all install a merged view that they accepted,
-- or none does; a fault may divide them.
CREATE OR REPLACE TEMP MACRO by_address(members) AS
    list_transform(members, lambda one: {'name': split_part(one, '@', 1), 'life': split_part(one, '@', 2)});

WITH known AS (
    SELECT i.*,
           lag(i.view) OVER mine AS view_before, lag(i.members) OVER mine AS members_before,
           lag(i.view_number) OVER mine AS number_before, lag(i.view_creator) OVER mine AS creator_before
    FROM installed i WINDOW mine AS (PARTITION BY grp, life ORDER BY index)
), merged AS (
    SELECT *, list_filter(subgroups, lambda side: list_contains(side, address)) AS mine FROM known WHERE len(subgroups) > 0
), companion AS (
    SELECT m.grp, m.life, m.view, list(o.address) AS together
    FROM merged m JOIN merged o
    ON o.grp = m.grp AND o.view = m.view AND (o.life = m.life OR o.previous = m.previous)
    GROUP BY ALL
), there AS (
    SELECT grp, view, list(address) AS installers, count(DISTINCT subgroups) AS lists FROM merged GROUP BY ALL
), fact AS (
    SELECT m.grp,
           t.lists > 1
           OR len(m.subgroups) < 2
           OR len(list_filter(m.subgroups, lambda side: len(side) = 0)) > 0
           OR list_sort(flatten(m.subgroups)) <> list_sort(m.members)
           OR by_address(m.members) <> list_sort(by_address(m.members))
           OR (len(m.mine) > 0 AND (
               list_sort(list_filter(t.installers, lambda one: list_contains(m.mine[1], one))) <> list_sort(c.together)
               OR len(list_filter(m.mine[1], lambda one: NOT list_contains(
                      CASE WHEN m.previous IS NULL THEN [] ELSE coalesce(m.members_before, []) END, one))) > 0
           ))
           OR coalesce((m.view_number, m.view_creator) <= (m.number_before, m.creator_before), false) AS wrong
    FROM merged m JOIN there t USING (grp, view) JOIN companion c USING (grp, life, view)
), accepted AS (
    SELECT grp, life, view AS came, next_number, next_creator, max(index) AS accepted
    FROM event WHERE kind = 'merge' AND stage = 'accepted' GROUP BY ALL
), both_ways AS (
    SELECT DISTINCT a.grp, a.life, a.came, a.accepted, m.view AS merged
    FROM accepted a JOIN merged m
    ON m.grp = a.grp AND m.view_number = a.next_number AND m.view_creator = a.next_creator AND m.previous = a.came
), elsewhere AS (
    SELECT b.grp, b.life, b.accepted, coalesce(i.left_at, q.until) AS until
    FROM both_ways b JOIN installed i ON i.grp = b.grp AND i.life = b.life AND i.view = b.came
    LEFT JOIN quiet q ON q.grp = b.grp AND q.life = b.life
    WHERE CASE WHEN i.next IS NOT NULL THEN i.next <> b.merged ELSE coalesce(q.view = b.came, false) END
), divided AS (
    SELECT e.grp, e.life, e.accepted,
           arg_max(f.kind, f.index) AS change, max(f.index) AS changed, any_value(m.life) IS NOT NULL AS marks
    FROM elsewhere e
    LEFT JOIN event f ON f.grp = e.grp AND f.life = e.life AND f.kind IN ('fault', 'heal') AND f.index < e.until
    LEFT JOIN event m ON m.grp = e.grp AND m.life = e.life AND m.kind IN ('fault', 'heal', 'quiet')
    GROUP BY ALL
)
SELECT grp, CASE WHEN wrong THEN 'broken' ELSE 'kept' END AS outcome FROM fact
UNION ALL
SELECT grp, CASE WHEN marks AND (change IS NULL OR (change = 'heal' AND changed < accepted)) THEN 'broken'
                 ELSE 'skipped' END
FROM divided
UNION ALL
-- A view into which members came from two views is a merged one.
SELECT grp, 'broken' FROM installed SEMI JOIN (
    SELECT grp, view FROM installed GROUP BY ALL HAVING count(DISTINCT previous) > 1
) USING (grp, view) WHERE coalesce(len(subgroups), 0) = 0;
