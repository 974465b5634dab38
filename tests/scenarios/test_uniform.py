"""UNIFORM: what any member delivers, all survivors of the primary component deliver, once and in one order.

The ids are those of docs/layers/uniform.md.  The conversations of the layer alone are in tests/layers/text/uniform.
"""

from __future__ import annotations

import pytest

from pygroups.sim import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Weather
from pygroups.sim.world.watch import Watch
from tests.majority import Notified
from tests.scenarios.common import QUICK

PROFILES = ("uniform", "uniform-fifo")
EACH = pytest.mark.parametrize("profile", PROFILES)
SENT = {  # by profile, each stage as the head that a member sends, and members that send it
    "uniform": {"sends": "AB", "PrepareAck": "BC", "Commit": "A", "Vote": "BC", "StabilityMsg": "A"},
    "uniform-fifo": {"sends": "AB", "PrepareAck": "AB", "Commit": "AB", "Vote": "BC", "StabilityMsg": "A"},
}
EACH_STAGE = pytest.mark.parametrize(
    ("profile", "stage", "who"),
    [(profile, stage, who) for profile, stages in SENT.items() for stage, names in stages.items() for who in names],
)
TABLES = ("preparing", "committing", "prepared", "committed")
SOON = 10.0


def group_of(names: str, profile: str, **more: int) -> ScenarioGroup:
    group = scenario(names, profile=profile, application=Notified, **QUICK, **more)
    Watch(group.world).look()
    return group


def goes_on(group: ScenarioGroup, names: str, within: float = SOON) -> None:
    view = tuple(names.split())
    group.until(lambda: all(group[name].view == view for name in view), within)


def told(group: ScenarioGroup, name: str) -> list[str]:
    actor = group.actors[name]
    assert isinstance(actor, Notified)
    return actor.news


@EACH
@pytest.mark.parametrize("sender", ["A", "C"])
def test_ufm_01_delivered_after_all_acknowledgements(profile: str, sender: str) -> None:
    """Three members, and no fault: while one acknowledgement is missing, nobody delivers."""
    with group_of("A B C", profile) as group:
        owner = "A" if profile == "uniform" else sender
        late = "B" if owner != "B" else "C"
        group.delay("PrepareAck", by=0.05, src=late, dest=owner)
        group[sender].sends(["x"])
        group.after(0.045)
        assert [group[name].texts for name in "ABC"] == [[], [], []]
        assert group[sender].landed == 0
        group.until(lambda: all(group[name].texts == ["x"] for name in "ABC"), 1)
        group.until(lambda: group[sender].landed == group[sender].stable == 1, 2)


@pytest.mark.parametrize("leaves", ["none", "first", "all"])
@EACH_STAGE
def test_ufm_02_a_crash_in_each_stage(profile: str, stage: str, who: str, leaves: str) -> None:
    """The member crashes as it sends this head, which reaches nobody, one member or all: the survivors deliver the same
    messages, once, and what the crashed member delivered is among them (`uniform-agreement` judges that)."""
    with group_of("A B C", profile) as group:
        group[who].sends(3)
        group["C"].sends(3)
        group.crash(who, stage, leaves=leaves)
        for _ in range(20):
            if not group[who].runs:
                break
            group[who].sends(2)
            group["C"].sends(2)
            group.after(0.1)
        rest = [name for name in "ABC" if name != who or group[name].runs]
        goes_on(group, " ".join(rest))
        group["C"].sends(2)
        group.settles()
        seen = {tuple(sorted(group[name].texts)) for name in rest}
        assert len(seen) == 1
        assert len(set(group["C"].texts)) == len(group["C"].texts)
        assert all(not group[name].holds for name in rest)


@EACH
def test_ufm_03_a_receiver_crashes_before_its_acknowledgement(profile: str) -> None:
    with group_of("A B C", profile) as group:
        group.crash("C", "PrepareAck", leaves="none")
        group["A"].sends(["x"])
        goes_on(group, "A B")
        assert group["A"].history[-2:] == ["x", "[A B]"] == group["B"].history[-2:]


@EACH_STAGE
def test_ufm_05_a_partition_in_each_stage(profile: str, stage: str, who: str) -> None:
    """`who` is cut off before this head leaves.  It delivers nothing that the others do not deliver, is blocked, and
    learns after the heal that the others went on; its process comes back with the state."""
    with group_of("A B C", profile) as group:
        for name in "ABC":
            group[name].sends(4, every=0.02)
        group.isolate(who, stage)
        rest = [name for name in "ABC" if name != who]
        for _ in range(20):
            if group[who].view != tuple("ABC") or "Blocked" in told(group, who):
                break
            group[who].sends(1)
            group.after(0.3)
        goes_on(group, " ".join(rest))
        group.until(lambda: "Blocked" in told(group, who), SOON)
        theirs = group[rest[0]].texts
        assert set(group[who].texts) <= set(theirs)
        if profile == "uniform":
            assert theirs[: len(group[who].texts)] == group[who].texts
        group.mend(who)
        group.until(lambda: not group[who].runs, SOON)
        assert group[who].ended == "excluded"
        group.start(who)
        group.until(lambda: sorted(group[rest[0]].view) == ["A", "B", "C"], SOON)
        group.settles()
        assert group.judge.facts["uniform-agreement"] and group.judge.facts["state-cut"]


@EACH
def test_ufm_06_a_repeated_commit_delivers_nothing_again(profile: str) -> None:
    with group_of("A B C", profile) as group:
        hits = group.watch("Commit", src="A", dest="B")
        group.repeat("Commit", copies=2, src="A", dest="B")
        group["A"].sends(5, every=0.02)
        group.settles()
        assert hits.hits
        for hit in hits.hits:
            group.again(hit)  # after the ACK
        group.settles()
        assert group["B"].delivered_from("A") == [1, 2, 3, 4, 5]


@EACH
@pytest.mark.parametrize("head", ["PrepareAck", "Commit"])
def test_ufm_08_a_join_and_a_leave_between_prepare_and_commit(profile: str, head: str) -> None:
    """The stages stand still while D joins, then while B leaves: the old view delivers before the new one, and D gets
    nothing of it."""
    with group_of("A B C", profile) as group:
        group.drop(head)
        group["A"].sends(["x"])
        group.after(0.05)
        group.start("D")
        goes_on(group, "A B C D")
        assert group["B"].history[-2:] == ["x", "[A B C D]"]
        assert "x" not in group["D"].texts
        group.heal()
        group["A"].sends(["y"])
        group.leave("B")
        goes_on(group, "A C D")
        group.settles()
        assert group["A"].texts == group["C"].texts == ["x", "y"] and group["D"].texts == ["y"]
        assert group["B"].texts == ["x", "y"]


@EACH
def test_ufm_10_tables_are_empty_when_quiet(profile: str) -> None:
    with group_of("A B C", profile) as group:
        for name in "ABC":
            group[name].sends(3_334)
        group.settles()
        for name in "ABC":
            assert len(group[name].delivered) == 3 * 3_334
            assert all(group[name].gauges[f"uniform.{table}"] == 0 for table in TABLES)


def test_one_exchange_more_than_total() -> None:
    """`total` delivers after two links, `uniform` after four."""
    took = {profile: _time_to_deliver(profile) for profile in ("total", "uniform")}
    assert took["total"] < took["uniform"] <= 2 * took["total"], took


def _time_to_deliver(profile: str) -> int:
    """Milliseconds until all members have the message of one."""
    with scenario("A B C D", profile=profile, weather=Weather(delay=10_000, jitter=0)) as group:
        group.after(1)
        group["C"].sends(["x"])
        for passed in range(200):
            if all(group[name].texts == ["x"] for name in "ABCD"):
                return passed
            group.after(0.001)
    raise AssertionError("not delivered")


@EACH
def test_the_sequencer_isolated_under_load(profile: str) -> None:
    """Nothing that the isolated side delivered is missing on the side of the majority."""
    with group_of("A B C D E", profile) as group:
        for name in "ABCDE":
            group[name].sends(60, every=0.01)
        group.after(0.2)
        group.isolate("A")
        goes_on(group, "B C D E")
        had = group["A"].texts
        group.until(lambda: all(group["B"].delivered_from(name) == list(range(1, 61)) for name in "BCDE"), SOON)
        assert had and set(had) <= set(group["B"].texts)
        group.mend("A")
        group.until(lambda: not group["A"].runs, SOON)
        assert group["A"].unknown is not None
        assert not {f"A{number}" for number in group["A"].unknown} & set(group["A"].texts)
