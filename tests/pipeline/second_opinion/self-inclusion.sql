-- A member is in every view it installs.
SELECT grp, CASE WHEN list_contains(members, address) THEN 'kept' ELSE 'broken' END AS outcome FROM installed;
