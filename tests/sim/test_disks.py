"""A disk that is full in the simulated world: a hole as large as the loss, and no promise broken."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pygroups.core.limits import SECOND
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.sim.batches.runner import play
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.steps import Action, Crash, DiskFull, Send, StartProcess
from tests.sim.test_faults import group

FULL = DiskFull(at=SECOND, who="C", lasts=SECOND)
SENDS = [Send(at=SECOND * at // 5, who="A", count=3, size=20) for at in range(2, 20)]


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """The records of the first life of `name`, by index."""
    rows: list[dict[str, Any]] = []
    for part in read_segments(find_segments([folder])):
        assert not isinstance(part, Quarantine)
        rows += [row for row in part.to_pylist() if row["member"] == name]
    first = min(rows, key=lambda row: row["time_us"])["incarnation"]
    return sorted([row for row in rows if row["incarnation"] == first], key=lambda row: row["index"])


def holes(rows: list[dict[str, Any]]) -> list[int]:
    """The numbers of missing records, for each hole."""
    indices = [-1, *(row["index"] for row in rows)]
    return [after - before - 1 for before, after in pairwise(indices) if after > before + 1]


def lives(folder: Path, name: str) -> int:
    return len({segment.incarnation for segment in find_segments([folder]) if segment.member == name})


def test_what_is_lost_is_a_hole_and_the_member_goes_on(tmp_path: Path) -> None:
    outcome = play(group(FULL, *SENDS), journals=tmp_path)
    assert outcome.witness is None, outcome.witness
    assert (outcome.counts["disk full"], outcome.counts["journal outages"]) == (1, 1)
    rows = rows_of(tmp_path, "C")
    first, rest = holes(rows)  # between the two stands the record that tells of the loss
    assert first >= 1 and rest >= 1
    assert [row["reason"] for row in rows].count("journal lost") == 1
    assert rows[-1]["time_us"] - rows[0]["time_us"] > 2 * SECOND  # it writes again
    assert holes(rows_of(tmp_path, "A")) == []
    fault = [row for row in rows if row["kind"] == "fault"]
    assert [row["reason"] for row in fault][:1] == ["disk full"] and fault[0]["index"] < rows[-1]["index"]


def test_a_member_that_is_to_leave_without_a_journal_leaves(tmp_path: Path) -> None:
    leaves = msgspec.structs.replace(FULL, leaves=True)
    outcome = play(group(leaves, *SENDS, StartProcess(at=3 * SECOND, who="C")), journals=tmp_path)
    assert outcome.witness is None, outcome.witness
    assert lives(tmp_path, "C") == 2
    rows = rows_of(tmp_path, "C")
    assert rows[-1]["time_us"] - rows[0]["time_us"] < 2 * SECOND
    assert "stop" not in [row["kind"] for row in rows]  # the disk was full until its end
    assert rows[-1]["reason"] == "journal lost" and len(holes(rows)) == 1
    views = [row for row in rows_of(tmp_path, "A") if row["kind"] == "view"]
    assert any(not any(member.startswith("C@") for member in row["members"]) for row in views[1:])
    assert [row["kind"] for row in rows_of(tmp_path, "A")].count("suspect") == 0  # it left, and was not missed


def test_a_member_that_has_not_joined_yet_ends(tmp_path: Path) -> None:
    outcome = play(
        group(
            Crash(at=SECOND, who="C"),
            StartProcess(at=2 * SECOND, who="C"),
            DiskFull(at=2 * SECOND, who="C", lasts=SECOND, leaves=True),
            StartProcess(at=5 * SECOND, who="C"),
        ),
        journals=tmp_path,
    )
    assert outcome.witness is None, outcome.witness
    assert lives(tmp_path, "C") == 3


@pytest.mark.parametrize("action", [FULL, msgspec.structs.replace(FULL, leaves=True)])
def test_the_promise_of_the_journal_is_judged_for_all_others(action: Action) -> None:
    """`journal-first` is judged where a process can crash unwritten; a member that knows of its loss is excused."""
    crash = Crash(at=2 * SECOND, who="B", moment="delivers", leaves="unwritten")
    outcome = play(group(action, *SENDS, crash))
    assert outcome.witness is None, outcome.witness
    assert outcome.facts["journal-first"] > 50


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_drawn_disks_break_no_promise_and_lose_what_they_count(profile: str, tmp_path: Path) -> None:
    full = 0
    for seed in range(5):
        folder = tmp_path / str(seed)
        outcome = play(draw(seed, Wish(profile, faults=("disk-full", "crash", "leave", "loss"))), journals=folder)
        assert outcome.witness is None, (seed, outcome.witness)
        full += outcome.counts.get("disk full", 0)
    assert full > 2
