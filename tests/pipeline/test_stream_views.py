"""Which views are closed, case by case."""

from __future__ import annotations

import pytest

from pygroups.cli.stream import _open_in
from pygroups.journal.schema import services_of_v1
from pygroups.pipeline.stream.known import Known
from pygroups.pipeline.stream.outputs import verdicts
from pygroups.pipeline.stream.state import LeftOpen, Progress
from pygroups.pipeline.stream.views import GRACE_US, Installed, Member, closed_views

ONE, TWO, THREE = 1, 2, 3
A, B, C = 10, 11, 12
NAMES = {A: "A@1", B: "B@1", C: "C@1"}


def member(key: int, *, end: str = "open", at: int = 0, whole: bool = True) -> Member:
    """`end`: open, stop (proven), excluded (others went on), or unread (excluded, with more in its journal)."""
    unread = end == "unread"
    return Member("g", NAMES[key], whole, at, proven=end == "stop", open=end == "open", unread=unread)


def views(*lists: str) -> dict[int, Installed]:
    names = {name[0]: name for name in NAMES.values()}
    return {
        number: Installed("g", number, frozenset(names[one] for one in members))
        for number, members in enumerate(lists, 1)
    }


@pytest.mark.parametrize(
    ("why", "members", "order", "lists", "closed"),
    [
        ("all have gone on", [member(A), member(B)], {A: [1, 2], B: [1, 2]}, ["AB", "AB"], {1}),
        ("B has not gone on yet", [member(A), member(B)], {A: [1, 2], B: [1]}, ["AB", "AB"], set()),
        ("B has not installed it yet", [member(A), member(B)], {A: [1, 2, 3], B: [1]}, ["AB", "AB", "A"], set()),
        ("B left out a view", [member(A), member(B)], {A: [1, 2, 3], B: [1, 3]}, ["AB", "AB", "AB"], {1, 2}),
        ("B has begun, and has no view yet", [member(A), member(B)], {A: [1, 2]}, ["AB", "A"], set()),
        ("all have stopped", [member(A, end="stop"), member(B, end="stop")], {A: [1], B: [1]}, ["AB"], {1}),
        ("the journal of B is missing", [member(A)], {A: [1, 2]}, ["AB", "A"], {1}),
        ("the journal of B has a hole", [member(A), member(B, whole=False)], {A: [1, 2], B: [1]}, ["AB", "A"], {1}),
        (
            "B was excluded just now",
            [member(A, at=GRACE_US - 1), member(B, end="excluded")],
            {A: [1, 2], B: [1]},
            ["AB", "A"],
            set(),
        ),
        (
            "B was excluded long ago",
            [member(A, at=GRACE_US), member(B, end="excluded")],
            {A: [1, 2], B: [1]},
            ["AB", "A"],
            {1},
        ),
        (
            "B was excluded long ago, and its journal has more",
            [member(A, at=GRACE_US), member(B, end="unread")],
            {A: [1, 2], B: [1]},
            ["AB", "A"],
            set(),
        ),
        (
            "B was excluded just now, and nobody is left",
            [member(A, end="stop"), member(B, end="excluded")],
            {A: [1, 2], B: [1]},
            ["AB", "A"],
            {1, 2},
        ),
        (
            "one side of a split is killed whole: its own view stays open, and no view of the other side waits for it",
            [member(A, at=2 * GRACE_US), member(B), member(C)],
            {A: [1, 2, 4], B: [1, 3], C: [1, 3]},
            ["ABC", "A", "BC", "A"],
            {1, 2},
        ),
        (
            "another member is in no way concerned",
            [member(A), member(B), member(C)],
            {A: [1, 2], B: [1, 2], C: [3]},
            ["AB", "AB", "C"],
            {1},
        ),
    ],
)
def test_a_view_is_closed_when_no_journal_can_have_more_of_it(
    why: str, members: list[Member], order: dict[int, list[int]], lists: list[str], closed: set[int]
) -> None:
    keys = {name: key for key, name in NAMES.items()}
    found = closed_views({keys[one.address]: one for one in members}, order, views(*lists))
    assert found == closed, why


def test_what_is_left_open_is_told_with_the_members_that_may_go_on() -> None:
    """All six members were killed at once: nothing proves the end of any of them."""
    names = [f"{name}@1" for name in "ABCDEF"]
    known = Known(views={1: Installed("g", 1, frozenset(names)), 2: Installed("h", 1, frozenset("Z"))})
    for key, address in enumerate(names):
        known.lives[key] = {"group": "g", "address": address, "last_us": key}
        known.order[key] = [(0, 1)]
    assert known.left_open({1, 2}) == {}
    left = known.left_open({2})
    assert left == {"g": LeftOpen(1, ["A@1", "B@1", "C@1", "D@1"], 2, 5)}
    progress = Progress(left_open=left, services={"g": {"total": list(services_of_v1("total"))}})
    reasons = {row["promise"]: row["reason"] for row in verdicts(progress).to_pylist()}
    assert reasons["total-order"] == "1 view is open and not judged" and reasons["fifo"] == "no occasion"
    sentence = (
        "left open: 1 view is not judged in group g: nothing proves the end of A@1, B@1, C@1, D@1 and 2 more, whose"
    )
    assert _open_in("g", left["g"]).startswith(sentence)
