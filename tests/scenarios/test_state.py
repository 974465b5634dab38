"""STATE_TRANSFER in a whole stack: a joiner has its state, from whoever can give it, or hears that nobody can."""

from __future__ import annotations

import msgspec
import pytest

from pygroups.core.limits import MILLISECOND
from pygroups.core.state_events import StateChunk
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from tests.scenarios.common import BOTH, QUICK

QUICKLY = {**QUICK, "state_timeout": 1_500 * MILLISECOND}


def gives(group: ScenarioGroup, name: str, how: str) -> None:
    """From now on its get_state() `gives`, `raises` or `hangs`."""
    member = group[name].member
    member.habits = msgspec.structs.replace(member.habits, state=how)


def has_state(group: ScenarioGroup, name: str) -> bool:
    """Messages that the others send meanwhile may be unstable."""
    return not group[name].member.state.waits and "statetransfer.stateless" not in group[name].holds


@BOTH
@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_another_member_gives_what_the_first_does_not(profile: str, how: str) -> None:
    """A's get_state() raises, or never returns; B has the state and gives it, that of the start of the next view."""
    with scenario("A B", profile=profile, **QUICKLY) as group:
        gives(group, "A", how)
        group["B"].sends(500, every=0.004)
        group.after(0.3)
        group.start("C")
        group.until(lambda: "C" in group["B"].view, within=1)
        within = 1.0 if how == "raises" else 3.0  # it says so, or nobody knows before the time-out
        group.until(lambda: len(group["C"].views) == 2 and has_state(group, "C"), within)
        assert group["A"].counters["state from another"] + group["B"].counters["state from another"] == 1
        group.start("D")
        group.until(lambda: "D" in group["D"].view and has_state(group, "D"), within=6)


@BOTH
@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_joiner_to_whom_nobody_gives_a_state_is_told_so(profile: str, how: str) -> None:
    """A and B have a state, and neither gives it: C begins without one, is told so, and is asked for none."""
    with scenario("A B", profile=profile, **QUICKLY) as group:
        for name in "AB":
            gives(group, name, how)
        group.after(0.1)
        group.start("C")
        group.until(lambda: group["C"].counters["state lost"] == 1 and has_state(group, "C"), within=8)
        gives(group, "B", "gives")
        group.start("D")
        group.until(lambda: "D" in group["D"].view and has_state(group, "D"), within=6)
        assert group["D"].counters["state lost"] == 0


@BOTH
def test_a_provider_that_cannot_be_reached_is_not_waited_for(profile: str) -> None:
    """What A gives to C is lost, all of it, and nothing else: after the time-out B gives its state."""
    with scenario("A B", profile=profile, **QUICKLY) as group:
        lost = group.drop("StateData", src="A", dest="C")
        group.start("C")
        group.until(lambda: "C" in group["C"].view, within=1)
        group.after(0.3)
        assert lost.hits and group["C"].member.state.waits
        group.until(lambda: has_state(group, "C"), within=3)
        assert len(group["C"].views) == 2
        lost.stop()


@BOTH
def test_parts_of_one_state_do_not_count_for_another(profile: str) -> None:
    """A dies after the first of several parts: the state of B begins with its own first part."""
    with scenario("A B", profile=profile, **QUICKLY) as group:
        gives(group, "A", "hangs")
        group.start("C")
        group.until(lambda: "C" in group["C"].view, within=1)
        joined = group["C"].view_id
        assert joined is not None
        group["A"].asks(StateChunk(joined, group["C"].address, b"the first of two", last=False))
        group.after(0.1)
        assert group["C"].member.state.parts == [b"the first of two"]
        group.crash("A")
        group.until(lambda: group["C"].view == ("B", "C") and has_state(group, "C"), within=2)


@BOTH
def test_a_joiner_that_gets_one_part_after_the_other_waits_on(profile: str) -> None:
    """A needs three times the time-out for its state, and gives a part of it now and then: C waits for it."""
    with scenario("A B", profile=profile, **QUICKLY) as group:
        gives(group, "A", "hangs")
        group.start("C")
        group.until(lambda: "C" in group["C"].view, within=1)
        joined, state = group["C"].view_id, msgspec.msgpack.encode([])
        assert joined is not None
        group["A"].member.world.judge.state_given(group["A"].address, joined, {}, state)
        for part in range(len(state) + 3):
            group.after(1.2)
            last = part == len(state) + 2
            group["A"].asks(StateChunk(joined, group["C"].address, state[:1] if last else b"", last))
        group.until(lambda: has_state(group, "C"), within=0.2)
        assert len(group["C"].views) == 1


@BOTH
def test_marks_of_former_members_are_bounded(profile: str) -> None:
    """Eight members send and leave; three of them are remembered, and joiners still begin at the right place."""
    with scenario("A B", profile=profile, marks_max=3, **QUICKLY) as group:
        for name in "CDEFGHIJ":
            group.start(name)
            group.until(lambda: name in group["A"].view and name in group[name].view, within=2)  # noqa: B023
            group[name].sends(3)
            group.after(0.1)
            group.leave(name)
            group.until(lambda: not group[name].runs, within=3)  # noqa: B023
        group.start("K")
        group.until(lambda: "K" in group["K"].view and has_state(group, "K"), within=3)
        group["A"].sends(3)
        group.after(0.5)
        for name in "ABK":
            for layer in group[name].member.stack.layers:
                for kept in ("marks", "received", "origins"):
                    assert len(getattr(layer, kept, {})) <= 3 + 3


@BOTH
def test_a_state_that_comes_after_its_owner_was_asked_is_not_lost(profile: str) -> None:
    """A hangs; what it gave to C comes when B and C have said that they wait for it.  B does not begin with none: C
    gives its state in the next view."""
    with scenario("A", profile=profile, **QUICKLY) as group:
        group["A"].sends(5)
        lost = group.drop("StateData", src="A")
        group.start("B C")
        group.until(lambda: group["B"].view == group["C"].view == ("A", "B", "C"), within=1)
        group.until(lambda: {hit.dest.name for hit in lost.hits} == {"B", "C"}, within=1)
        group.after(0.1)
        group.pause("A")
        asked = group.watch("CollectAck", src="C", dest="B")
        group.delay("Accept", src="C", dest="B", by=0.05)
        group.until(lambda: len(asked.hits) > 0, within=3)
        for part in [hit for hit in lost.hits if hit.dest.name == "C"]:
            group.again(part)
        group.until(lambda: group["C"].view == ("B", "C"), within=1)
        assert group["B"].member.state.waits and not group["C"].member.state.waits
        group.until(lambda: not group["B"].member.state.waits, within=1.5)
        assert group["B"].counters["state lost"] == 0 and group["C"].counters["state from another"] == 1
        lost.stop()
        group.crash("A")


@BOTH
def test_the_first_of_those_who_wait_begins_when_nobody_has_a_state_after_all(profile: str) -> None:
    """A crashes before anything of its state has come: B begins with none, two views later, and gives that to C."""
    with scenario("A", profile=profile, **QUICKLY) as group:
        lost = group.drop("StateData", src="A")
        group.start("B C")
        group.until(lambda: len(lost.hits) > 1, within=1)
        group.crash("A")
        group.until(lambda: has_state(group, "B") and has_state(group, "C"), within=2)
        assert group["B"].counters["state lost"] == 1 and group["B"].counters["state in doubt"] == 1
        assert len(group["B"].views) == 3
