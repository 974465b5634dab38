"""The network repeats old frames of a member that runs no more, as a switch in a loop does."""

from __future__ import annotations

import pytest

from pygroups.sim import ScenarioGroup, scenario
from pygroups.sim.scenarios.frames import FrameRule
from tests.scenarios.common import BOTH, QUICK

DETECTION = 0.4 + 0.2  # seconds: `heartbeat_timeout` and `verify_timeout` of QUICK
VIEW = 0.2  # for a view change


def repeats(group: ScenarioGroup, seen: FrameRule, every: float = 0.05, times: int = 100) -> None:
    """All runs that this rule has seen so far arrive again, and again."""
    hits = list(seen.hits)
    for number in range(times):
        for hit in hits:
            group.later(number * every, group.again, hit)


@BOTH
@pytest.mark.parametrize("end", ["pause", "crash"])
def test_repeated_frames_of_a_dead_host_delay_no_view(profile: str, end: str) -> None:
    """Neither its silence nor the proof of its end is taken back."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        seen = group.watch("Heartbeat", "Data", "Ack", src="C")
        group["C"].sends(20, every=0.01)
        group.after(1)
        (group.pause if end == "pause" else group.crash)("C")
        repeats(group, seen)
        group.until(lambda: group["A"].view == group["B"].view == ("A", "B"), within=DETECTION + VIEW)
        group.after(2)
        assert group["A"].view == group["B"].view == ("A", "B")


@BOTH
def test_the_answer_to_an_earlier_question_is_repeated(profile: str) -> None:
    """C was asked before, and answered.  When it hangs, that answer arrives again each time that it is asked."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        answers = group.watch("IAmAlive", src="C")
        lost = group.drop("Heartbeat", src="C")
        group.until(lambda: len(answers.hits) >= 2, within=3)
        lost.stop()
        group.after(1)
        group.pause("C")
        repeats(group, answers)
        group.until(lambda: group["A"].view == group["B"].view == ("A", "B"), within=DETECTION + VIEW)
