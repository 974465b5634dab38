"""journal-first: the check itself, and deaths between two steps of a turn, which show what came first."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from pygroups.core import turn
from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.stack import Output
from pygroups.core.view import ViewId
from pygroups.sim.batches.runner import Outcome, play
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Delivery, UnicastDelivery
from pygroups.sim.promises.journals import JournalFirst
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.steps import Crash, Send
from pygroups.sim.world import member
from tests.sim.test_faults import group

A, B = Address("A", "a" * 16), Address("B", "b" * 16)
VIEW = ViewId(1, A)


def wrote(kind: str, first: int, count: int) -> tuple[str, ViewId, dict[str, Any]]:
    return kind, VIEW, {"origin": A.name, "origin_incarnation": A.incarnation, "first": first, "count": count}


def checked(*, journals: bool = True) -> JournalFirst:
    """A check that was told of A's messages 1 to 3, and of B's delivery of 1 and 2."""
    check = JournalFirst()
    check.around.journals = journals
    check.written(A, [wrote("send", 1, 3)])
    check.written(B, [wrote("deliver", 1, 2)])
    return check


def delivers(check: JournalFirst, first: int, count: int) -> None:
    check.delivered(Delivery(B, VIEW, 0, A, first, count, b""))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    yield
    JournalFirst.around.journals = False  # where no judge has filled it in, it is everybody's


def test_what_both_have_written_is_delivered() -> None:
    check = checked()
    delivers(check, 1, 2)
    assert check.facts() == {"journal-first": 1}


@pytest.mark.parametrize(
    ("first", "count", "whose", "number"), [(1, 3, "receiver", 3), (3, 1, "receiver", 3), (3, 2, "sender", 4)]
)
def test_what_one_of_them_has_not_written_is_not(first: int, count: int, whose: str, number: int) -> None:
    with pytest.raises(Broken, match=f"before the journal of its {whose} has the record") as broken:
        delivers(checked(), first, count)
    assert broken.value.witness.message == f"{A}#{number}"


@pytest.mark.parametrize("lost", [(), (A,), (B,), (A, B)])
def test_a_message_to_one_member_is_in_both_journals_unless_a_journal_is_lost(lost: tuple[Address, ...]) -> None:
    check = checked()
    for one in lost:
        check.journal_lost(one)
    if len(lost) == 2:
        check.received(UnicastDelivery(B, A, B, 1, 1, b""))
        return
    whose = "receiver" if lost == (A,) else "sender"
    with pytest.raises(Broken, match=f"before the journal of its {whose} has it"):
        check.received(UnicastDelivery(B, A, B, 1, 1, b""))


def test_nothing_is_judged_where_journals_are_not_known() -> None:
    check = checked(journals=False)
    delivers(check, 7, 1)
    assert check.facts() == {"journal-first": 0}


# -- a death between the layers and the journal


def dies(leaves: Literal["nothing", "unwritten"]) -> Outcome:
    """B multicasts, and dies in the turn in which that leaves."""
    crash = Crash(at=2 * SECOND - 1, who="B", moment="sends", leaves=leaves)
    return play(group(Send(at=2 * SECOND, who="B", count=1, size=20), crash))


@pytest.mark.parametrize("leaves", ["nothing", "unwritten"])
def test_who_dies_before_its_journal_is_written_is_known_to_nobody(leaves: Literal["nothing", "unwritten"]) -> None:
    outcome = dies(leaves)
    assert outcome.witness is None, outcome.witness
    assert outcome.counts["crash at sends"] == 1
    assert (outcome.facts["journal-first"] > 0) == (leaves == "unwritten")


def network_first(output: Output, now: int, outside: turn.Outside) -> None:
    """A planted bug: as hand_out, but the network comes before the journal."""
    outside.network.send(output.frames)
    turn.hand_out(output._replace(frames=[]), now, outside)


def application_first(output: Output, now: int, outside: turn.Outside) -> None:
    """Another one: the application comes before the journal."""
    outside.inbox.arrived(output.events)
    turn.hand_out(output._replace(events=[]), now, outside)


@pytest.mark.parametrize(("bug", "whose"), [(network_first, "sender"), (application_first, "receiver")])
def test_a_turn_in_another_order_is_noticed(bug: Any, whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "hand_out", bug)
    found = dies("unwritten").witness
    assert found is not None and found.promise == "journal-first"
    assert f"before the journal of its {whose} has the record" in found.detail


def test_some_crashes_are_drawn_before_the_journal() -> None:
    drawn = [step for seed in range(100) for step in draw(seed, Wish("total")).actions if isinstance(step, Crash)]
    unwritten = [crash for crash in drawn if crash.leaves == "unwritten"]
    assert unwritten and all(crash.moment != "now" for crash in unwritten)
