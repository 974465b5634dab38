"""The table that a replay prints: golden text of a small history, folding, marks, widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Block, Event, Excluded, NewView
from pygroups.core.run import Run, pack
from pygroups.core.suspicion_events import Suspect
from pygroups.core.top import Delivered
from pygroups.core.view import AgreedView, ViewId
from pygroups.sim.batches.runner import play
from pygroups.sim.promises.broken import Witness
from pygroups.sim.schedules.schedule import Schedule
from pygroups.sim.schedules.steps import Crash, Pause, StartProcess
from pygroups.sim.world.spacetime import SIGNS, SpaceTime
from pygroups.sim.world.story import Sent
from tests.sim.toy_group import toy_builder, toy_schedule

GOLDEN = Path(__file__).with_name("spacetime.txt")
A, B, C, C2 = (Address(name, f"{number:016x}") for number, name in enumerate("ABCC", 1))
MILLISECOND = 1_000


def table(*heard: tuple[int, str, str | Event], names: str = "ABC", witness: Witness | None = None) -> list[str]:
    """The rows, without the explanation above them and the names."""
    told = SpaceTime(tuple(names), 100)
    for now, who, what in heard:
        told.hear(now * MILLISECOND, who, what)
    return [line.plain() for line in told.lines(witness)][len(SIGNS) + 2 :]


def delivered(origin: Address, first: int, count: int = 1, position: int = 0) -> Delivered:
    run = Run(origin, None, (), origin, first, 0, count, pack([b"x"] * count))
    return Delivered(run, None, position)


def view(number: int, *members: Address, joined: tuple[Address, ...] = (), left: tuple[Address, ...] = ()) -> NewView:
    id = ViewId(number, members[0])
    names = tuple(member.name for member in members)
    return NewView(AgreedView(id, members, names), None, members, joined, left, True, None)


def schedule() -> Schedule:
    """Three start, C is paused and then dies; the toy group cannot have that."""
    plain = toy_schedule(3)
    faults = (Pause(at=150_000, who="B", lasts=50_000), Crash(at=230_000, who="C"), StartProcess(at=300_000, who="C"))
    return toy_schedule(3, actions=tuple(sorted([*plain.actions, *faults], key=lambda action: action.at)))


def test_the_table_of_a_history_that_goes_wrong() -> None:
    """Written anew by deleting the file and calling this test."""
    played = schedule()
    told = SpaceTime(played.names, 100)
    witness = play(played, build=toy_builder(3), story=told).witness
    assert witness is not None
    text = "".join(f"{line.plain()}\n" for line in told.lines(witness))
    if not GOLDEN.exists():
        GOLDEN.write_text(text)
        pytest.fail(f"{GOLDEN.name} was written: read it, and keep it if it is right")
    assert text == GOLDEN.read_text()


def test_what_happens_at_one_instant_shares_a_row() -> None:
    rows = table((1, "A", f"starts as {A}"), (1, "B", f"starts as {B}"), (2, "A", Block()))
    assert len(rows) == 2
    assert rows[0].split() == ["0.001000", "starts", "as", "A", "(000000)", "starts", "as", "B", "(000000)"]
    assert rows[1].split() == ["0.002000", "is", "blocked", "|"]


def test_deliveries_between_two_events_are_folded() -> None:
    rows = table(
        (1, "A", f"starts as {A}"),
        (2, "A", delivered(A, 1)),
        (3, "A", delivered(A, 2, 3)),
        (4, "B", delivered(A, 1)),
        (5, "A", delivered(A, 9)),
        (6, "A", delivered(A, 7, position=-1)),
        (7, "A", Sent(4, None)),
        (8, "A", Sent(1, B)),
        (9, "A", Block()),
        (10, "A", delivered(A, 10)),
    )
    assert [row.split()[0] for row in rows if row.split()[0][0] == "0"] == [
        "0.001000",
        "0.008000",
        "0.009000",
        "0.010000",
    ]
    assert "A#1..4, A#9, A>7, sends" in rows[1] and rows[1].rstrip().endswith("A#1")
    assert "sends B@" in rows[2]


def test_a_second_life_has_a_name_of_its_own() -> None:
    rows = table(
        (0, "A", f"starts as {A}"),
        (1, "C", f"starts as {C}"),
        (2, "C", "crashes"),
        (3, "C", f"starts as {C2}"),
        (4, "C", view(2, A, C2, joined=(C2,), left=(C,))),
        (5, "C", delivered(C2, 1)),
        (6, "A", Suspect(C2, False)),
    )
    text = "\n".join(rows)
    for said in ("starts as C' (000000)", "C'] +C' -C", "C'#1", "suspects C'"):
        assert said in text


def test_who_is_gone_leaves_its_column_empty() -> None:
    rows = table((1, "C", f"starts as {C}"), (2, "A", Block()), (3, "C", Excluded("left", "")), (4, "A", Block()))
    assert rows[1].endswith(" |") and not rows[3].endswith("|") and rows[3].endswith("is blocked")


def test_what_happens_to_all_goes_across() -> None:
    rows = table((1, "-", "all faults end"), (2, "A B", "fault: cut both"))
    assert rows[0].startswith("    0.001000 -- all faults end ---") and len(rows[0]) == 100
    assert "-- fault: cut both: A B ---" in rows[1]


def test_rows_that_a_witness_names_are_marked() -> None:
    witness = Witness(promise="fifo", detail="late", member=str(B), other=str(C), message=f"{A}#3", view=f"2:{A}")
    rows = table(
        (1, "B", f"starts as {B}"),
        (2, "C", f"starts as {C}"),
        (3, "A", delivered(A, 1, 2)),
        (4, "A", delivered(A, 3)),
        (5, "B", view(1, A, B)),
        (6, "B", view(2, A, B)),
        (7, "C", "crashes"),
        witness=witness,
    )
    times = [row.split()[1] for row in rows if row.startswith("> ")]
    assert times == ["0.004000", "0.006000", "0.007000"]
    assert rows[-2] == f"broken: {witness}"
    assert rows[-1] == f"  B is {B}; C is {C}; > marks the rows with this message, this view and these members"


@pytest.mark.parametrize(
    ("names", "columns", "width"),
    [("ABC", None, 120), ("ABC", 80, 100), ("ABC", 300, 160), ("ABCDEFG", None, 152), ("ABCDEFGHIJKL", None, 160)],
)
def test_it_fits(names: str, columns: int | None, width: int) -> None:
    told = SpaceTime(tuple(names), columns)
    assert told.width == width
    members = tuple(Address(name, "0" * 16) for name in names)
    for at in range(90):
        told.hear(
            at,
            names[at % len(names)],
            NewView(AgreedView(ViewId(1, members[0]), members, names), None, (), (), (), True, None),
        )
        told.hear(at, "-", "all faults end")
    lines = [line.plain() for line in told.lines(None)]
    assert max(map(len, lines[len(SIGNS) :])) <= width
    assert sum(line.split()[:1] == ["time"] for line in lines) == 5, "the names are repeated every 40 rows"
