"""The lines that `pygroups join` prints for people, and the words in which it refuses."""

from __future__ import annotations

import asyncio
import json

import pytest

from pygroups import (
    Address,
    Blocked,
    Event,
    Gap,
    JournalLost,
    Left,
    MergeView,
    Message,
    NotSent,
    StaysApart,
    Suspected,
    Unblocked,
    Undelivered,
    View,
    ViewId,
)
from pygroups.cli.flags import as_flags
from pygroups.cli.join_options import JoinOptions
from pygroups.cli.printed import Chat, line_of, trouble
from pygroups.cli.shell import Shell

A, B, C = (Address(name, "0" * 8) for name in "ABC")
ID = ViewId(2, A)


def view(*members: Address, joined: tuple[Address, ...] = (), left: tuple[Address, ...] = ()) -> View:
    return View(ID, members, members[0], True, joined, left, members)


def merge(one: Address, *others: Address) -> MergeView:
    members = (one, *others)
    return MergeView(ID, members, one, True, others, (), (one,), ((one,), others), True, others)


def message(payload: bytes, sender: Address = B) -> Message:
    return Message(sender, payload, 1, ID, 0)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (message(b"hello"), "B: hello"),
        (message(b"\xff\x00"), "B: (2 bytes that are not text)"),
        (message(b"\x1b[31mred"), "B: ?[31mred"),
        (message(b"  two  spaces"), "B:   two  spaces"),
        (message(b"mine", A), None),
        (view(A, C, joined=(C,), left=(B,)), "-- C joined; B left; members: A, C"),
        (view(A, B), "-- a new view; members: A, B"),
        (merge(A, B, C), "-- [A] and [B, C] are one group again; members: A, B, C"),
        (Gap(B, 4, 2, (B, C)), "-- 2 messages of B went only to B, C"),
        (Blocked("2 of 3 members are not reached"), "-- blocked: 2 of 3 members are not reached"),
        (Unblocked(), "-- no longer blocked"),
        (Suspected(B), "-- B does not answer"),
        (StaysApart(B, "links", "A and B"), "-- B stays in another group of this name: A and B"),
        (Undelivered(B, range(3, 4)), "-- B did not acknowledge 1 message sent to it alone"),
        (Undelivered(B, range(3, 5)), "-- B did not acknowledge 2 messages sent to it alone"),
        (Left("left", []), "-- you have left the group"),
        (Left("journal lost", []), "-- you have left the group"),
        (Left("excluded", [1]), None),
        (JournalLost("the disk is full"), None),
    ],
)
def test_an_event_as_a_person_reads_it(event: Event, text: str | None) -> None:
    chat = Chat(lambda: A, "chat", echoed=True)
    assert chat.text_of(view(A)) == "-- you are A in group chat, alone so far; each line you type goes to all members"
    assert chat.line_of(event) == (b"" if text is None else text.encode() + b"\n")


def test_own_lines_are_shown_when_no_terminal_shows_what_is_typed() -> None:
    assert Chat(lambda: A, "chat", echoed=False).text_of(message(b"mine", A)) == "A: mine"


def test_trouble_is_a_sentence() -> None:
    assert trouble(Left("left", [])) is None
    assert trouble(message(b"x")) is None
    text = trouble(Left("excluded", [3, 4]))
    assert text is not None and "the fate of 2 messages is unknown" in text
    assert trouble(JournalLost("the disk is full")) == "the disk is full; this member continues without a journal"
    assert trouble(JournalLost("the disk is full"), leaves=True) == "the disk is full; this member leaves"
    assert trouble(Left("journal lost", [])) is None


def test_a_member_that_joins_again_is_in_trouble_only_for_messages_of_unknown_fate() -> None:
    assert trouble(Left("excluded", []), rejoins=True) is None
    text = trouble(Left("excluded", [3]), rejoins=True)
    assert text is not None and text.endswith("the fate of 1 message is unknown. The member joins again")
    me = [A]
    chat = Chat(lambda: me[0], "chat", echoed=True, rejoins=True)
    chat.text_of(view(A, B))
    assert chat.text_of(Left("excluded", [])) == "-- the other members have removed you from the group; you join again"
    me[0] = Address("A", "1" * 8)
    assert chat.text_of(view(B, me[0])) == "-- you are A in group chat, with B; each line you type goes to all members"
    assert chat.text_of(message(b"mine", me[0])) is None


class Excludes:
    """A channel that is excluded after it has accepted two messages."""

    group = "g"

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send_many(self, lines: list[bytes]) -> list[int]:
        if not self.sent:
            self.sent += lines[:2]
            raise NotSent("the message was not sent", 2)
        self.sent += lines
        return [7]


@pytest.mark.parametrize("rejoin", [True, False])
def test_lines_that_an_excluded_member_did_not_send_are_sent_later(rejoin: bool) -> None:
    async def story() -> tuple[list[bytes], int]:
        channel = Excludes()
        shell = Shell(channel, JoinOptions(rejoin=rejoin))  # type: ignore[arg-type]
        await shell._send([b"a", b"b", b"c"])
        return channel.sent, shell.last

    if rejoin:
        assert asyncio.run(story()) == ([b"a", b"b", b"c"], 7)
    else:
        with pytest.raises(NotSent):
            asyncio.run(story())


def test_a_merge_and_a_gap_as_a_program_reads_them() -> None:
    line = json.loads(line_of(merge(A, B, C)))
    assert line["event"] == "merge"
    assert (line["members"], line["transitional"]) == (["A", "B", "C"], ["A"])
    assert (line["subgroups"], line["winner"], line["reset"]) == ([["A"], ["B", "C"]], ["B", "C"], True)
    gap = {"event": "gap", "from": "B", "first": 4, "count": 2, "subgroup": ["B", "C"]}
    assert json.loads(line_of(Gap(B, 4, 2, (B, C)))) == gap
    assert json.loads(line_of(Blocked("too few"))) == {"event": "blocked", "reason": "too few"}
    assert json.loads(line_of(Unblocked())) == {"event": "unblocked"}


def test_an_event_that_is_newer_than_the_command_has_a_line_too() -> None:
    class Slow(Event, frozen=True):
        member: Address
        seconds: float

    assert json.loads(line_of(Slow(B, 2.5))) == {"event": "slow", "member": "B", "seconds": 2.5}


@pytest.mark.parametrize(
    ("library", "command_line"),
    [
        ("bind to 127.0.0.1, or say insecure=True", "bind to 127.0.0.1, or say --insecure"),
        ("bind '0.0.0.0:1' can be reached", "--bind '0.0.0.0:1' can be reached"),
        ("bind='0.0.0.0:1' can be reached", "--bind '0.0.0.0:1' can be reached"),
        ("say advertise='host:port' too", "say --advertise 'host:port' too"),
        ("give journal= a folder", "give --journal a folder"),
        ("journal_payloads= needs journal=DIR", "--journal-payloads needs --journal DIR"),
        ("give the group's secret=", "give the group's --secret-file"),
        ("give secret=, or insecure=True, or", "give --secret-file, or --insecure, or"),
        ("there is no profile 'x'; the name 'A' is taken", "there is no profile 'x'; the name 'A' is taken"),
    ],
)
def test_the_library_names_arguments_and_the_command_line_flags(library: str, command_line: str) -> None:
    assert as_flags(library) == command_line


def test_the_json_of_sides_that_stay_apart() -> None:
    assert json.loads(line_of(StaysApart(B, "links", "A and B"))) == {
        "event": "apart",
        "member": "B",
        "reason": "links",
        "detail": "A and B",
    }
