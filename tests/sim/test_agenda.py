"""The agenda: everything in the order of its time, and at one time in the order in which it was noted."""

from __future__ import annotations

import pytest

from pygroups.sim.promises.broken import Broken
from pygroups.sim.world import agenda as agendas
from pygroups.sim.world.agenda import Agenda


def test_what_was_planned_comes_in_its_time_and_before_what_was_noted_later() -> None:
    agenda, seen = Agenda(), list[str]()

    def planned(name: str) -> None:
        seen.append(f"{name} at {agenda.now}")
        agenda.at(agenda.now, seen.append, f"after {name}")

    agenda.at(20, seen.append, "noted first")
    agenda.plan(
        [(30, planned, ("third",)), (10, planned, ("first",)), (20, planned, ("second",)), (20, planned, ("too",))]
    )
    agenda.at(20, seen.append, "noted last")
    agenda.run_until(20)
    assert seen == [
        *("first at 10", "after first", "noted first", "second at 20", "too at 20", "noted last"),
        *("after second", "after too"),
    ]
    assert agenda.now == 20, "what is due at the limit has happened, and no more"
    agenda.run_until(100)
    assert seen[-2:] == ["third at 30", "after third"]
    assert agenda.now == 100


def test_what_is_over_happens_now() -> None:
    agenda, seen = Agenda(), list[int]()
    agenda.run_until(50)
    agenda.at(10, lambda: seen.append(agenda.now))
    agenda.run_until(60)
    assert seen == [50]


def test_a_storm_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agendas, "PER_SECOND_MAX", 100)
    agenda = Agenda()

    def again() -> None:
        agenda.at(agenda.now, again)

    again()
    with pytest.raises(Broken, match="more than 100 events"):
        agenda.run_until(10)


def test_time_goes_on_after_something_broken() -> None:
    agenda, seen = Agenda(), list[int]()

    def breaks() -> None:
        raise Broken("liveness", "as if")

    agenda.at(5, breaks)
    agenda.at(7, lambda: seen.append(agenda.now))
    agenda.at(20, lambda: seen.append(agenda.now))
    with pytest.raises(Broken):
        agenda.run_until(10)
    agenda.run_until(30)
    assert (seen, agenda.now) == ([7, 20], 30), "the end that was not reached ends nothing later"
