-- Per connection a prefix, in order: the k-th delivered is the k-th sent; connections rise per (receiver, origin).
WITH told AS (
    SELECT grp, life, peer, connection, first, count,
           row_number() OVER (PARTITION BY grp, life, peer, connection ORDER BY index) AS k
    FROM run WHERE kind = 2
), came AS (
    SELECT grp, life, sender, peer, connection, first, count, index,
           row_number() OVER (PARTITION BY grp, life, sender, peer, connection ORDER BY index) AS k,
           max(connection) OVER (PARTITION BY grp, life, sender ORDER BY index) AS highest
    FROM run WHERE kind = 3
)
SELECT c.grp,
       CASE WHEN c.connection < c.highest THEN 'broken'
            WHEN o.life IS NULL THEN 'skipped'
            WHEN t.first = c.first AND t.count = c.count THEN 'kept'
            WHEN t.first IS NULL AND NOT o.complete THEN 'skipped'
            ELSE 'broken' END AS outcome
FROM came c LEFT JOIN life o ON o.grp = c.grp AND o.life = c.sender
LEFT JOIN told t ON t.grp = c.grp AND t.life = c.sender AND t.peer = c.peer AND t.connection = c.connection AND t.k = c.k;
