"""`pygroups join --profile gossip`: three processes over UDP send, and go on when the leader is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_join import Shell

LINES = 100


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Shell]]:
    running: dict[str, Shell] = {}
    for name in "ABC":
        running[name] = Shell(tmp_path, "cache", "--name", name, "--profile", "gossip")
        running[name].view_of(*"ABC"[: len(running)])
    for name in "AB":
        running[name].view_of(*"ABC")
    yield running
    for member in running.values():
        if member.process.poll() is None:
            member.process.kill()
        member.process.wait()
        for pipe in (member.process.stdin, member.process.stdout, member.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def lines(name: str, begin: int, end: int) -> bytes:
    return b"".join(b"%s%d\n" % (name.encode(), number) for number in range(begin, end))


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
