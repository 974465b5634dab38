"""What applications and their surroundings do: it happens, is counted, and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pygroups.layers.profiles import PROFILES
from pygroups.sim.batches.runner import Outcome, play
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.judge import Judge
from pygroups.sim.schedules.schedule import Habits, Schedule
from pygroups.sim.schedules.steps import Action, Beside, CloseConnection, Crash, Cut, Mislead, Send, StartProcess

BOTH = pytest.mark.parametrize("profile", ["fifo", "total"])


def played(profile: str, *actions: Action, habits: dict[str, Habits] | None = None, **fields: Any) -> Outcome:
    """A, B and C are together after a while; then this happens, and all is well again after three seconds."""
    starts = tuple(StartProcess(at=1_000 * rank, who=name) for rank, name in enumerate("ABC"))
    schedule = Schedule(
        seed=3,
        profile=profile,
        names=("A", "B", "C"),
        habits=dict.fromkeys("ABC", Habits()) | (habits or {}),
        actions=(*starts, *actions),
        heal_at=3_000_000,
        bound=90_000_000,
        **fields,
    )
    outcome = play(schedule, judge=Judge(checks_of(PROFILES[profile].services)))
    assert outcome.witness is None, str(outcome.witness)
    return outcome


@BOTH
def test_a_second_life_under_a_name_is_refused(profile: str) -> None:
    outcome = played(profile, Beside(at=1_500_000, who="B", lasts=2_000_000))
    assert outcome.faults["two processes under one name"] == outcome.counts["name taken"] == 1
    assert "crash" not in outcome.counts, "it was refused and did not have to end by itself"


@BOTH
def test_a_process_of_another_profile_is_refused(profile: str) -> None:
    outcome = played(profile, Beside(at=1_500_000, who="B", lasts=2_000_000, stranger=True))
    assert outcome.faults["another profile"] == 1 and outcome.counts["sent Refuse"] >= 1


@BOTH
def test_messages_to_oneself_arrive(profile: str) -> None:
    outcome = played(profile, Send(at=1_500_000, who="B", count=4, size=20, to="B"))
    assert outcome.facts["unicast-once"] >= 1


@BOTH
def test_an_application_forgets_a_peer(profile: str) -> None:
    writes = [Send(at=at, who="A", count=20, size=20, to="B") for at in (1_499_900, 1_510_000)]
    outcome = played(profile, writes[0], CloseConnection(at=1_500_000, who="A", other="B"), writes[1])
    assert outcome.faults["peer forgotten"] == 1 and outcome.facts["unicast-reported"] > 0


@BOTH
@pytest.mark.parametrize("how", ["late", "former", "some"])
def test_whoever_joins_is_misled_for_a_while(profile: str, how: Any) -> None:
    rejoins = (Crash(at=1_400_000, who="C"), StartProcess(at=1_510_000, who="C"))
    outcome = played(profile, rejoins[0], Mislead(at=1_500_000, how=how, lasts=1_000_000), rejoins[1])
    assert outcome.faults[f"directory: {how}"] == 1 and outcome.counts["views"] >= 9


@BOTH
def test_a_directory_that_shows_nobody_shows_a_joiner_the_members(profile: str) -> None:
    """And the members of two sides find each other by what they remember: the directory stays so to the end."""
    blind = Mislead(at=3_300_000, how="nobody", lasts=90_000_000)
    rejoins = (Crash(at=3_400_000, who="C"), StartProcess(at=3_510_000, who="C"))
    parts = Cut(at=4_500_000, side=("A",), lasts=8_000_000)
    outcome = played(profile, blind, *rejoins, parts, stays=60_000_000, for_good=True)
    assert outcome.faults["directory: nobody"] == 1 and outcome.counts["merged views"] >= 3
    assert outcome.facts["progress"] > 0


@BOTH
def test_the_parts_of_a_state_come_apart_and_its_provider_ends_after_one(profile: str) -> None:
    apart = dict.fromkeys("ABC", Habits(state_apart=200_000))
    rejoins = (Crash(at=1_000_000, who="C"), StartProcess(at=1_500_000, who="C"))
    dies = Crash(at=1_450_000, who="coordinator", moment="StateData", nth=1)
    send = Send(at=900_000, who="B", count=3, size=20)
    outcome = played(profile, send, rejoins[0], dies, rejoins[1], habits=apart)
    assert outcome.faults["crash at StateData"] == outcome.counts["state from another"] == 1


@BOTH
def test_some_keep_no_state(profile: str) -> None:
    rejoins = (Crash(at=1_000_000, who="C"), StartProcess(at=1_500_000, who="C"))
    outcome = played(profile, *rejoins, habits={"A": Habits(state="keeps none")})
    assert outcome.facts["state-cut"] > 0
