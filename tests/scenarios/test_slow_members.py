"""A member that reads nothing is excluded by policy: the group is told why, the member too, and nobody else waits."""

from __future__ import annotations

import pytest

from pygroups.core.limits import SECOND
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from tests.scenarios.common import BOTH, QUICK

AFTER = 10
SMALL = QUICK | {"run_bytes": 1 << 10, "window": 8 << 10, "stable_bytes": 1 << 10}
POLICY = SMALL | {"slow_exclude": AFTER * SECOND}
PATIENT = POLICY | {"heartbeat": 1 * SECOND, "heartbeat_timeout": 120 * SECOND}
ANYBODY = pytest.mark.parametrize("slow", list("ABC"))


def flood(group: ScenarioGroup, *, but: str = "") -> None:
    """Everybody but `but` sends three windows."""
    for name in "ABC":
        if name != but:
            group[name].sends(60, size=400)


def others(name: str) -> list[str]:
    return [other for other in "ABC" if other != name]


def everything_of(group: ScenarioGroup, names: list[str]) -> bool:
    return all(group[name].delivered_from(other) == list(range(1, 61)) for name in names for other in names)


@BOTH
@ANYBODY
def test_FLOW_a_member_that_reads_nothing_is_excluded_after_its_time(profile: str, slow: str) -> None:
    """Also the one that leads, orders and counts the votes."""
    with scenario("A B C", profile=profile, **POLICY) as group:
        rest = others(slow)
        group[slow].reads(False)
        flood(group, but=slow)
        group.after(AFTER - 1)
        assert all(group[name].view == ("A", "B", "C") for name in "ABC")
        assert any(group[name].unsent for name in rest)
        group.until(lambda: group[slow].ended == "excluded", within=3)
        assert group[slow].why_ended.startswith("read nothing for 10 s, while others waited to send")
        group.until(lambda: everything_of(group, rest), within=5)
        assert all(group[name].view == tuple(rest) for name in rest)


@BOTH
def test_without_the_policy_senders_wait(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        group["C"].reads(False)
        flood(group, but="C")
        group.after(120)
        assert group["A"].unsent
        assert group["A"].view == ("A", "B", "C")
        group["C"].reads()
        group.until(lambda: everything_of(group, ["A", "B"]), within=5)


@BOTH
def test_a_member_that_reads_a_little_is_not_excluded(profile: str) -> None:
    with scenario("A B C", profile=profile, **POLICY) as group:
        group["C"].reads(False)
        flood(group, but="C")
        for _ in range(6):
            group.after(AFTER - 2)
            group["C"].reads()
            group.after(0.02)
            group["C"].reads(False)
        assert group["A"].view == ("A", "B", "C")


@BOTH
def test_a_slow_member_that_sends_loses_nothing_that_it_sent(profile: str) -> None:
    with scenario("A B C", profile=profile, **POLICY) as group:
        group["C"].reads(False)
        flood(group)
        group.until(lambda: group["C"].ended == "excluded", within=AFTER + 5)
        unknown = group["C"].unknown
        assert unknown is not None
        had = group["A"].delivered_from("C")
        assert had == group["B"].delivered_from("C")
        assert set(range(1, group["C"].accepted)) <= {*had, *unknown}
        group.until(lambda: everything_of(group, ["A", "B"]), within=5)


@BOTH
@ANYBODY
def test_a_member_that_is_stopped_is_excluded_although_no_heartbeat_is_missed_yet(profile: str, slow: str) -> None:
    """With a heartbeat timeout of two minutes.  When it runs again, it learns the reason."""
    with scenario("A B C", profile=profile, **PATIENT) as group:
        rest = others(slow)
        flood(group, but=slow)
        group.pause(slow)
        group.after(AFTER - 1)
        assert all(group[name].view == ("A", "B", "C") for name in rest)
        group.until(lambda: all(group[name].view == tuple(rest) for name in rest), within=6)
        group.until(lambda: everything_of(group, rest), within=5)
        group.after(20)
        group.resume(slow)
        group.until(lambda: group[slow].ended == "excluded", within=5)
        assert "slow_policy" in group[slow].why_ended


@BOTH
@ANYBODY
def test_a_member_that_is_stopped_while_the_view_changes_is_excluded_too(profile: str, slow: str) -> None:
    """The view change waits for its answer, and no votes are counted, so nobody can name it as slow."""
    with scenario("A B C", profile=profile, **PATIENT) as group:
        rest = others(slow)
        lost = group.drop("gms.CollectAck", src="B" if slow == "A" else slow)
        group.start("D")
        group.until(lambda: bool(lost.hits), within=1)
        group.pause(slow)
        lost.stop()
        flood(group, but=slow)
        group.until(lambda: all(group[name].view == (*rest, "D") for name in rest), within=2 * AFTER)
        group.until(lambda: everything_of(group, rest), within=5)
        group.resume(slow)
        group.until(lambda: group[slow].ended == "excluded", within=5)
        assert "slow_policy" in group[slow].why_ended


@BOTH
def test_a_member_that_was_stopped_itself_asks_for_no_exclusion(profile: str) -> None:
    """A is stopped while its window is full: when it runs again, C has read, and the news waits unread."""
    with scenario("A B C", profile=profile, **PATIENT) as group:
        group["C"].reads(False)
        group["A"].sends(60, size=400)
        group.after(AFTER - 3)
        group.pause("A")
        group.after(1)
        group["C"].reads()
        group.after(AFTER)
        group.resume("A")
        group.settles()
        assert group["C"].view == ("A", "B", "C")


@BOTH
def test_two_that_read_nothing_do_not_exclude_everybody(profile: str) -> None:
    with scenario("A B", profile=profile, **POLICY) as group:
        for name in "AB":
            group[name].reads(False)
            group[name].sends(60, size=400)
        group.until(lambda: any(group[name].ended for name in "AB"), within=AFTER + 5)
        group.after(2 * AFTER)
        assert sorted(group[name].ended for name in "AB") == ["", "excluded"]


@BOTH
def test_the_leader_crashes_while_it_excludes(profile: str) -> None:
    """All were told, so the next leader excludes the slow member at once, with the reason."""
    with scenario("A B C D", profile=profile, **POLICY) as group:
        group["D"].reads(False)
        group["B"].sends(60, size=400)
        group.crash("A", "Collect")
        group.until(lambda: group["D"].ended == "excluded", within=AFTER + 5)
        group.until(lambda: group["B"].view == ("B", "C"), within=5)
        assert "slow_policy" in group["D"].why_ended
        group.until(lambda: group["C"].delivered_from("B") == list(range(1, 61)), within=5)


@BOTH
def test_control_is_never_behind_data(profile: str) -> None:
    """No payload that A sends to B alone arrives any more.  The view changes that A leads are not held up."""
    with scenario("A B C", profile=profile, **SMALL) as group:
        lost = group.drop("unicast2.Data", src="A", dest="B", where=lambda run: run.count > 0)
        group["A"].tells("B", 100, size=400)
        group.after(1)
        assert lost.hits and not group["B"].received
        group.start("D")
        group.until(lambda: group["B"].view == ("A", "B", "C", "D"), within=1.5)
        group.leave("C")
        group.until(lambda: group["B"].view == ("A", "B", "D"), within=1.5)
        lost.stop()
        group.until(lambda: len(group["B"].received) == 100, within=10)
