-- Two members that go together from one view to the next deliver a message in the same view; in uniform all that
-- deliver it do, but for what a member that began another history delivered in its view before.
WITH apart AS (
    SELECT i.grp, i.life, i.view
    FROM installed i JOIN event a USING (grp, life, index)
    JOIN event b ON b.grp = i.grp AND b.life = i.life AND b.kind = 'view' AND b.index = i.left_at
    WHERE i.next IS NOT NULL AND b.history IS DISTINCT FROM a.history
), places AS (
    SELECT DISTINCT grp, life, sender, number, view FROM delivered ANTI JOIN apart USING (grp, life, view)
), several AS (
    SELECT grp, sender, number FROM places GROUP BY ALL HAVING count(DISTINCT view) > 1
), pairs AS (
    SELECT a.grp, a.life, b.life AS other, a.view, b.view AS other_view
    FROM several s JOIN places a USING (grp, sender, number) JOIN places b USING (grp, sender, number)
    WHERE a.view <> b.view AND a.life <> b.life
), together AS (
    SELECT a.grp, a.view, a.life, b.life AS other FROM installed a JOIN installed b USING (grp, view, next)
)
SELECT grp, 'kept' AS outcome FROM places
UNION ALL
SELECT p.grp, 'broken' FROM pairs p JOIN profile f USING (grp)
WHERE f.profile LIKE 'uniform%'
   OR EXISTS (SELECT 1 FROM together t WHERE t.grp = p.grp AND t.life = p.life AND t.other = p.other
              AND t.view IN (p.view, p.other_view));
