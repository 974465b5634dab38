"""What the simulated world writes into journals beside what the layers do: marks of faults, and states."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.layer import Record
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.state_events import StateArrived, StateWanted
from pygroups.core.view import ViewId
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.sim.batches.runner import play
from pygroups.sim.promises.judge import Judge
from pygroups.sim.schedules.schedule import Habits, Weather
from pygroups.sim.schedules.steps import Action, Clog, Crash, Cut, Jump, Pause, SlowReader, StartProcess
from pygroups.sim.world.state import StateKeeper
from tests.sim.test_faults import group

A, B = Address("A", "a1"), Address("B", "b1")


def faults_of(name: str, folder: Path) -> list[tuple[int, str]]:
    """Index and reason of the marks in the journal of `name`."""
    rows: list[dict[str, Any]] = []
    for part in read_segments(find_segments([folder])):
        assert not isinstance(part, Quarantine)
        rows += part.to_pylist()
    return [(row["index"], row["reason"]) for row in rows if row["member"] == name and row["kind"] == "fault"]


@pytest.mark.parametrize(
    ("fault", "weather", "reasons"),
    [
        (Cut(at=SECOND, side=("C",), lasts=SECOND), Weather(), ["cut"]),
        (Clog(at=SECOND, who="C", lasts=SECOND), Weather(), ["clog"]),
        (Pause(at=SECOND, who="C", lasts=SECOND), Weather(), ["pause"]),
        (SlowReader(at=SECOND, who="C", loop_delay=50 * MILLISECOND, lasts=SECOND), Weather(), ["slow member"]),
        (Cut(at=SECOND, side=("C",), lasts=SECOND), Weather(tail=0.01), ["weather", "cut"]),
        (Cut(at=SECOND, side=("C",), lasts=100 * MILLISECOND), Weather(), []),
        (Crash(at=SECOND, who="C"), Weather(), []),
        (Jump(at=SECOND, who="C", by=SECOND), Weather(repeat=0.1), []),
    ],
    ids=lambda value: type(value).__name__.lower() if not isinstance(value, list) else ",".join(value) or "none",
)
def test_a_life_that_begins_while_a_fault_lasts_has_a_mark_of_its_own(
    fault: Action, weather: Weather, reasons: list[str], tmp_path: Path
) -> None:
    names = ("A", "B", "C", "D")
    late = StartProcess(at=SECOND + 500 * MILLISECOND, who="D")
    schedule = group(fault, late, names=names, habits={name: Habits() for name in names}, weather=weather)
    outcome = play(schedule, journals=tmp_path)
    assert outcome.witness is None, outcome.witness
    assert faults_of("D", tmp_path) == list(enumerate(reasons, 1)), "behind `start`, before all else"
    assert [reason for _, reason in faults_of("A", tmp_path)][-1:] != [], "who lived saw it happen"


def test_a_life_that_begins_when_all_has_healed_has_no_mark(tmp_path: Path) -> None:
    names = ("A", "B", "C", "D")
    schedule = group(
        Cut(at=SECOND, side=("C",), lasts=60 * SECOND),
        StartProcess(at=6 * SECOND, who="D"),
        names=names,
        habits={name: Habits() for name in names},
    )
    assert play(msgspec.structs.replace(schedule, weather=Weather(tail=0.01)), journals=tmp_path).witness is None
    assert faults_of("D", tmp_path) == []


def test_without_a_state_the_first_one_that_was_awaited_is_written_down() -> None:
    written: list[Record] = []
    judge = SimpleNamespace(state_none=lambda *_: None)
    parts: dict[str, Any] = {"judge": judge, "habits": Habits(), "env": SimpleNamespace(counters={})}
    member: Any = SimpleNamespace(address=A, note=lambda *record: written.append(record), **parts)
    keeper = StateKeeper(member)
    for mark in (5, 7):
        event: Any = SimpleNamespace(with_state=True, starts={A: mark}, gaps=(), without_state=None)
        keeper.viewed(event)
    keeper.arrived(StateArrived(ViewId(3, A), A, b"", last=True, none=True))
    assert written == [("state_lost", ViewId(3, A), {"reason": "lost", "digest": {A: 4}})]
    keeper.viewed(event)
    keeper.arrived(StateArrived(ViewId(4, A), A, b"", last=True, none=True))
    assert written[1:] == [("state_lost", ViewId(4, A), {"reason": "none", "digest": {A: 6}})]


def test_a_state_is_written_down_in_the_view_that_it_belongs_to() -> None:
    """The member may be in the next view when it arrives; that of the journal is the state's, in real members too."""
    written: list[Record] = []

    def note(kind: str, view: Any, fields: dict[str, Any]) -> None:
        written.append((kind, view, fields))

    agenda, rng = SimpleNamespace(after=lambda *_: None), SimpleNamespace(randint=lambda low, high: low)
    parts: dict[str, Any] = {"judge": Judge([]), "agenda": agenda, "rng": rng, "habits": Habits(), "note": note}
    member: Any = SimpleNamespace(address=A, **parts)
    view, digest = ViewId(2, A), {A: 5}
    StateKeeper(member).wanted(StateWanted(view, (B,), digest))
    data = msgspec.msgpack.encode([(*A, 5)])
    StateKeeper(member).arrived(StateArrived(view, A, data, last=True))
    assert [(kind, place) for kind, place, _ in written] == [("state_get", view), ("state_set", view)]
    assert [fields["digest"] for _, _, fields in written] == [{A: 4}, {A: 4}]
