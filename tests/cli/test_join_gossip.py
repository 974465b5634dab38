"""`pygroups join --profile gossip`: three processes over UDP send, and go on when the leader is killed; a process that
keeps messages in a folder, and one that catches up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_join import Shell
from tests.cli.three_processes import lines, three_processes

LINES = 100


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Shell]]:
    with three_processes(tmp_path, "gossip") as running:
        yield running


def heard(member: Shell, last: dict[str, str]) -> dict[str, list[str]]:
    """The messages of each sender, up to the last one of each that lives."""
    had: dict[str, list[str]] = {}
    waiting = dict(last)
    while waiting:
        event = member.event("message")
        had.setdefault(event["from"], []).append(event["text"])
        if waiting.get(event["from"]) == event["text"]:
            del waiting[event["from"]]
    return had


@pytest.mark.slow
def test_three_processes_send_and_go_on_when_the_leader_is_killed(members: dict[str, Shell]) -> None:
    for name, member in members.items():
        member.type(lines(name, 0, LINES))
    members["B"].event("message")
    members["A"].process.send_signal(signal.SIGKILL)
    for name in "BC":
        members[name].view_of(*"BC")
        members[name].type(lines(name, LINES, 2 * LINES))
    last = {name: f"{name}{2 * LINES - 1}" for name in "BC"}
    for member in (members["B"], members["C"]):
        had = heard(member, last)
        for name in "BC":
            assert had[name] == [f"{name}{number}" for number in range(2 * LINES)][-len(had[name]) :]


@pytest.mark.slow
def test_a_handler_has_a_folder_and_a_joiner_catches_up(tmp_path: Path) -> None:
    late = tmp_path / "late"
    with three_processes(tmp_path, "gossip", {"B": ("--late-join-handler", str(late))}) as members:
        members["A"].type(lines("A", 0, 3))
        assert heard(members["B"], {"A": "A2"}) == {"A": ["A0", "A1", "A2"]}
        assert b"A1" in b"".join([file.read_bytes() for file in (late / "orders").iterdir()])
        members["D"] = Shell(tmp_path, "orders", "--name", "D", "--profile", "gossip", "--catch-up")
        assert heard(members["D"], {"A": "A2"}) == {"A": ["A0", "A1", "A2"]}
