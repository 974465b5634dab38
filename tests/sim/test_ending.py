"""The end of a schedule: the duties of time are tried out once all is quiet."""

from __future__ import annotations

import pytest

from pygroups.sim.batches.runner import play
from pygroups.sim.schedules.schedule import Habits, Schedule
from pygroups.sim.schedules.steps import StartProcess


@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_a_schedule_tries_the_duties_out_when_all_is_quiet(profile: str) -> None:
    names = tuple("ABC")
    starts = tuple(StartProcess(at=1_000 * rank, who=name) for rank, name in enumerate(names))
    config = {"run_bytes": 2 << 10, "window": 8 << 10, "stable_bytes": 2 << 10}
    schedule = Schedule(
        seed=1,
        profile=profile,
        names=names,
        habits=dict.fromkeys(names, Habits()),
        config=config,
        duties=True,
        actions=starts,
        heal_at=1_000_000,
        bound=60_000_000,
    )
    outcome = play(schedule)
    assert outcome.witness is None
    judged = {promise: count for promise, count in outcome.facts.items() if promise.endswith("-in-time")}
    assert judged["leave-in-time"] == 1 <= judged["window-in-time"]
    assert judged["repair-in-time"] >= 2 <= judged["stable-in-time"]
    assert outcome.faults["frame of a lone message lost"] >= 1
