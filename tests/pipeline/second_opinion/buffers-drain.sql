-- After quiet no window, table or queue holds anything.
SELECT e.grp, CASE WHEN coalesce(list_max(map_values(e.gauges)), 0) = 0 AND coalesce(list_min(map_values(e.gauges)), 0) = 0
                   THEN 'kept' ELSE 'broken' END AS outcome
FROM event e JOIN quiet q USING (grp, life) WHERE e.kind = 'stats' AND e.index > q.since;
