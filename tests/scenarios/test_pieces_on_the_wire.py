"""A rule for runs on the wire may take a piece of a large payload."""

from __future__ import annotations

import pytest

from pygroups.sim import scenario


@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_a_dropped_piece_is_shown_and_sent_again(profile: str) -> None:
    with scenario("A B C", profile=profile, run_bytes=2 << 10, window=32 << 10) as group:
        rule = group.drop("Data" if profile == "fifo" else "Forward", src="B", count=1, where=lambda run: run.index > 0)
        group["B"].sends("large", size=9_000)
        group.until(lambda: all(len(member.delivered) == 1 for member in group.members), within=10)
        (hit,) = rule.hits
        assert f"piece {hit.run.index}" in str(hit)
        assert {len(member.delivered[0].payload) for member in group.members} == {9_000}
