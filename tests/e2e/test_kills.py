"""Members die between the steps of their turns, and an audit over all journals is clean; a planted bug is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.journal.reader import Quarantine, find_segments, read_segments
from tests.e2e.group import Group, audit
from tests.e2e.kill_points import ROTATION, STEPS
from tests.e2e.kills import Kills, send

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PROMISED = {
    "agreement",
    "buffers-drain",
    "fifo",
    "gap-free-prefix",
    "initial-view",
    "integrity",
    "liveness",
    "no-duplication",
    "run-identity",
    "same-view-delivery",
    "self-delivery",
    "self-inclusion",
    "stability-safety",
    "total-order",
    "transitional-set",
    "view-accuracy",
    "view-agreement",
    "view-monotonic",
    "virtual-synchrony",
}
"""What profile `total` promises and this history has an occasion for."""


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_deaths_between_the_steps_break_no_promise(tmp_path: Path, profile: str) -> None:
    groups = [Kills(tmp_path / profile, seed=1, profile=profile)]
    for kills in groups:
        kills.run(len(STEPS))
        assert kills.done == dict.fromkeys(STEPS, 1)
    code, found = audit(*(kills.group.journal for kills in groups))
    assert code == 0, found
    assert found["quarantined"] == 0
    assert {promise["name"] for promise in found["promises"] if promise["verdict"] == "held"} >= PROMISED - (
        set() if profile == "total" else {"total-order"}
    )


def test_deaths_at_the_border_of_two_segments_lose_nothing(tmp_path: Path) -> None:
    kills = Kills(tmp_path, seed=2, settings={"journal_segment": 4_096})
    kills.run(4, ROTATION)  # also compares what applications were given with the journals
    assert kills.done == dict.fromkeys(ROTATION, 2)
    indices: dict[str, list[int]] = {}
    for batch in read_segments(find_segments([kills.group.journal])):
        assert not isinstance(batch, Quarantine)
        for row in batch.select(["member", "incarnation", "index"]).to_pylist():
            indices.setdefault(f"{row['member']}@{row['incarnation']}", []).append(row["index"])
    assert len(indices) == 8
    assert all(sorted(found) == list(range(len(found))) for found in indices.values())
    assert max(len(list(folder.glob("*.journal"))) for folder in kills.group.journal.glob("*/*@*")) > 20


def test_the_audit_accuses_a_member_that_sends_before_it_writes(tmp_path: Path) -> None:
    """M48: the same group, the same death by its own hand; only that the network comes before the journal."""
    with Group(tmp_path) as group:
        others = group.start("A", "B", "C")
        faulty = group.go(group.prepare(), "D", planted=True)
        group.until("D has joined", lambda: bool(faulty.address))
        group.settle()
        group.everywhere("fault", "kill", [faulty.address])
        for worker in (*others, faulty):
            send(worker)
        faulty.order("die", step="network too early", passages=10)
        assert faulty.ended() == -9
        group.settle()
        group.everywhere("heal")
        group.quiet(group.stop_sending())
        group.everywhere("quiet")
        group.leave()
    code, found = audit(group.journal)
    assert code == 1
    (integrity,) = [promise for promise in found["promises"] if promise["name"] == "integrity"]
    assert integrity["verdict"] == "broken"
    assert {violation["origin"] for violation in integrity["violations"]} == {faulty.address}
