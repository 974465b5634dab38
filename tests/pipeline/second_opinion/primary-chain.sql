-- Under one history id views form one sequence with one beginning.  Each was accepted under one ballot by more than half
-- of the view before, or by half with its first member.  A view that needs members for which an operator vouched begins
-- another history, and those of them that did not accept it are left out of the count.
CREATE OR REPLACE TEMP MACRO most(listed, votes) AS
    2 * len(list_intersect(listed, votes)) > len(listed)
    OR (2 * len(list_intersect(listed, votes)) = len(listed) AND list_contains(votes, listed[1]));

CREATE OR REPLACE TEMP TABLE history_of AS
SELECT i.grp, i.life, i.address, i.view, i.view_number, i.view_creator, i.named AS previous, i.members, e.history, e."primary"
FROM installed i JOIN event e USING (grp, life, index);

WITH hole AS (
    SELECT n.grp, list(DISTINCT n.address) AS holes
    FROM life_name n LEFT JOIN life l USING (grp, life) WHERE NOT coalesce(l.complete, false) GROUP BY ALL
), gone AS (
    SELECT grp, list(DISTINCT peer) AS gone FROM event WHERE kind = 'suspect' AND reason = 'vouched' GROUP BY ALL
), told AS (
    SELECT grp, view, any_value(view_number) AS number, any_value(view_creator) AS creator, min(members) AS members,
           mode(history ORDER BY history) AS history, mode(previous ORDER BY previous) AS old,
           count(DISTINCT coalesce(history, 0)) AS histories, count(DISTINCT previous) AS olds,
           bool_and("primary") AND bool_and(history IS NOT NULL) AS says, list(address) AS there, count(*) AS many
    FROM history_of GROUP BY ALL
), link AS (
    SELECT t.*, b.members AS before, b.history AS history_before, coalesce(h.holes, []) AS holes,
           CASE WHEN t.old IS NOT NULL AND b.history IS DISTINCT FROM t.history THEN coalesce(g.gone, []) ELSE [] END
           AS gone,
           t.old IS NOT NULL AND b.view IS NOT NULL AND b.history IS DISTINCT FROM t.history AS anew
    FROM told t LEFT JOIN told b ON b.grp = t.grp AND b.view = t.old
    LEFT JOIN hole h ON h.grp = t.grp LEFT JOIN gone g ON g.grp = t.grp
), vote AS (
    SELECT e.grp, e.view AS old, e.next_number AS number, e.next_creator AS creator, e.ballot_number, e.ballot_leader,
           list(DISTINCT l.address) AS voters
    FROM event e JOIN life l USING (grp, life) WHERE e.kind = 'flush' AND e.stage = 'accepted' GROUP BY ALL
), decided AS (
    SELECT k.grp, k.view,
           bool_or(coalesce(most(list_filter(k.before, lambda one: list_contains(coalesce(v.voters, []), one)
                                                                    OR NOT list_contains(k.gone, one)),
                                 coalesce(v.voters, [])), false)) AS enough,
           CASE WHEN any_value(k.anew) THEN any_value(len(k.holes)) > 0
                ELSE bool_or(most(k.before, list_concat(coalesce(v.voters, []), k.holes))) END AS unsure
    FROM link k LEFT JOIN vote v ON v.grp = k.grp AND v.old = k.old AND v.number = k.number AND v.creator = k.creator
    GROUP BY ALL
), placed AS (
    SELECT k.*, d.enough, d.unsure,
           k.old IS NULL AND len(list_filter(k.holes, lambda one: list_contains(k.members, one)
                                                                 AND NOT list_contains(k.there, one))) > 0 AS open,
           (SELECT count(*) FROM link o WHERE o.grp = k.grp AND o.old = k.old AND o.history = k.history) > 1 AS forked
    FROM link k JOIN decided d USING (grp, view)
), born AS (
    SELECT grp, history, count(*) AS births FROM placed WHERE (old IS NULL AND NOT open) OR anew GROUP BY ALL
), fact AS (
    SELECT p.grp, p.many,
           NOT p.says OR p.histories > 1 OR p.olds > 1 OR p.forked
           OR (((p.old IS NULL AND NOT p.open) OR p.anew) AND coalesce(b.births, 0) > 1)
           OR (p.before IS NOT NULL AND NOT p.enough AND NOT p.unsure)
           OR (p.anew AND len(p.holes) = 0 AND len(list_intersect(p.before, p.gone)) = 0) AS wrong,
           p.open OR (p.old IS NOT NULL AND p.before IS NULL) OR (p.before IS NOT NULL AND NOT p.enough) AS skipped
    FROM placed p LEFT JOIN born b ON b.grp = p.grp AND b.history = p.history
)
SELECT grp, CASE WHEN wrong THEN 'broken' WHEN skipped THEN 'skipped' ELSE 'kept' END AS outcome
FROM fact;
