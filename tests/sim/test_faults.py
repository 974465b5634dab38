"""What each step of a schedule does to a group of the real layers."""

from __future__ import annotations

import msgspec

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.sim.runner import Outcome, play
from pygroups.sim.schedule import Action, Cut, Gather, Schedule
from tests.sim.toy import toy_schedule

QUICK = {
    "heartbeat": 50 * MILLISECOND,
    "heartbeat_timeout": 200 * MILLISECOND,
    "verify_timeout": 50 * MILLISECOND,
    "ready_timeout": 100 * MILLISECOND,
    "flush_timeout": 150 * MILLISECOND,
    "join_retry": 100 * MILLISECOND,
}


def group(*actions: Action, size: int = 3, **changes: object) -> Schedule:
    """So many members that start together and send a little; what happens to them; five seconds."""
    plain = toy_schedule(size)
    everything = tuple(sorted([*plain.actions, *actions], key=lambda action: action.at))
    basis = msgspec.structs.replace(plain, actions=everything, config=QUICK, heal_at=5 * SECOND, bound=30 * SECOND)
    return msgspec.structs.replace(basis, **changes)


def held(schedule: Schedule) -> tuple[Outcome, list[str]]:
    """What came of it, and its story; every promise was kept."""
    lines: list[str] = []
    outcome = play(schedule, tell=lines.append)
    assert outcome.witness is None, "\n".join([*lines, str(outcome.witness), outcome.trace])
    return outcome, lines


def test_sides_that_split_are_gathered_again() -> None:
    split = Cut(at=SECOND, side=("C",), lasts=SECOND)
    _, apart = held(group(split))
    outcome, together = held(group(split, Gather(at=3 * SECOND)))
    assert not any("[A B C]" in line for line in apart if line.split()[0] > "1.0")
    assert any("[A B C]" in line for line in together if line.split()[0] > "3.0")
    assert outcome.counts["gathered"] == 1
