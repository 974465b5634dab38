"""A view change survives a cut or a second crash at each of its steps: at the leader, at a participant, at the member
that leads next.

The crash of a single member at each step is in test_views.py and test_primary.py.
"""

from __future__ import annotations

from typing import Literal

import pytest

from pygroups.layers.profiles import PROFILES, Profile
from pygroups.sim import ScenarioGroup, scenario
from pygroups.sim.world.watch import Watch
from tests.majority import majority
from tests.scenarios.common import QUICK

LEADS = ("Ready", "Collect", "Propose", "Install", "Done")
ANSWERS = ("ReadyRsp", "CollectAck", "Accept", "InstallAck")
SOON = 30.0  # seconds until a view change ends in spite of further faults
STACKS: dict[str, Profile] = {
    "total": PROFILES["total"],
    "fifo": PROFILES["fifo"],
    "total-majority": majority("total"),
    "fifo-majority": majority("fifo"),
}
OFTEN = ("total", "fifo-majority")  # each order and each rule of the next view once; `make long` plays the others
EACH_STACK = pytest.mark.parametrize(
    "stack", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in STACKS]
)
EACH_WAY = pytest.mark.parametrize("way", ["both", "out", "in"])
Way = Literal["both", "out", "in"]


def group_of(names: str, stack: str) -> ScenarioGroup:
    """A group whose members send during the next 100 ms, judged by `progress` too."""
    group = scenario(" ".join(names), profile=STACKS[stack], **QUICK)
    Watch(group.world).look()
    for member in group.members:
        member.sends(20, every=0.005)
    group.after(0.05)
    return group


def agree(group: ScenarioGroup, names: str) -> None:
    """Soon exactly these members are in one view, in this order."""
    wanted = tuple(names)
    group.until(lambda: all(group[name].view == wanted for name in wanted), SOON)


def comes_back(group: ScenarioGroup, name: str, rest: str, stack: str) -> None:
    """The network heals.  The member that was cut off is in one view with the others again; where a majority decides,
    it has been excluded, and its process starts again."""
    group.mend(name)
    if "majority" in stack:
        group.until(lambda: not group[name].runs, SOON)
        assert group[name].ended == "excluded"
        group.start(name)
    group.until(lambda: all(sorted(group[one].view) == sorted(rest + name) for one in rest + name), SOON)
    for member in group.members:
        member.sends(3)
    group.settles()


@EACH_STACK
@pytest.mark.slow
@EACH_WAY
@pytest.mark.parametrize("moment", LEADS)
def test_the_leader_is_cut_off_at_each_step(moment: str, way: Way, stack: str) -> None:
    """E is gone, and A leads the change.  A is cut off before this head leaves: B, C and D go on without A."""
    with group_of("ABCDE", stack) as group:
        group.isolate("A", moment, way=way)
        group.crash("E")
        agree(group, "BCD")
        group.until(lambda: group["B"].delivered_from("D") == list(range(1, 21)), 1)
        group.after(2)
        assert "A" not in group["B"].view
        comes_back(group, "A", "BCD", stack)


@EACH_STACK
@pytest.mark.slow
@EACH_WAY
@pytest.mark.parametrize("moment", ANSWERS)
def test_a_participant_is_cut_off_at_each_step(moment: str, way: Way, stack: str) -> None:
    """E is gone, and C is cut off before this answer leaves: the others go on without C."""
    with group_of("ABCDE", stack) as group:
        group.isolate("C", moment, way=way)
        group.crash("E")
        agree(group, "ABD")
        group.until(lambda: group["B"].delivered_from("D") == list(range(1, 21)), 1)
        group.after(2)
        assert "C" not in group["B"].view
        comes_back(group, "C", "ABD", stack)


def _pairs() -> list[tuple[str, str]]:
    """A step of the first leader, and a step of the next one: as the leader after that, or as a participant before."""
    led = [(first, second) for first in LEADS for second in LEADS]
    return led + [(first, answer) for index, first in enumerate(LEADS) for answer in ANSWERS[: index + 1]]


@EACH_STACK
@pytest.mark.slow
@pytest.mark.parametrize("then", ["crash", pytest.param("cut", marks=pytest.mark.long)])
@pytest.mark.parametrize(("first", "second"), _pairs())
def test_two_leaders_fail_one_after_the_other(first: str, second: str, then: str, stack: str) -> None:
    """One member is gone.  A leads the change and crashes with this head, which reaches one member.  B, the next
    leader, crashes or is cut off at its own step: the rest goes on.  Where a majority decides, the rest is a majority
    of 7."""
    rest = "CDEF" if "majority" in stack else "CD"
    last = "G" if "majority" in stack else "E"
    with group_of(f"AB{rest}{last}", stack) as group:
        group.crash("A", first, leaves="first")
        if then == "crash":
            group.crash("B", second, leaves="first")
        else:
            group.isolate("B", second)
        group.crash(last)
        agree(group, rest)
        group.until(lambda: group["C"].delivered_from("D") == list(range(1, 21)), 1)
        if then == "cut":
            group.after(2)
            comes_back(group, "B", rest, stack)
        group.settles()
