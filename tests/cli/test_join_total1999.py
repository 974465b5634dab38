"""`pygroups join --profile total1999`: three processes over UDP, and the one that orders is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_join import Shell
from tests.cli.three_processes import lines, three_processes

LINES = 200


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Shell]]:
    with three_processes(tmp_path, "total1999") as running:
        yield running


def heard(member: Shell, until: dict[str, str]) -> list[tuple[str, str]]:
    """The messages of the living up to the last of each, and the messages of the dead among them."""
    had: list[tuple[str, str]] = []
    waiting = dict(until)
    while waiting:
        event: dict[str, Any] = member.event("message")
        had.append((event["from"], event["text"]))
        if waiting.get(event["from"]) == event["text"]:
            del waiting[event["from"]]
    return had


@pytest.mark.slow
def test_three_processes_send_and_survive_a_kill_of_the_sequencer(members: dict[str, Shell]) -> None:
    for name, member in members.items():
        member.type(lines(name, 0, LINES))
    first = members["B"].event("message")
    members["A"].process.send_signal(signal.SIGKILL)
    for name in "BC":
        members[name].type(lines(name, LINES, 2 * LINES))
    last = {name: f"{name}{2 * LINES - 1}" for name in "BC"}
    at_b = [(first["from"], first["text"]), *heard(members["B"], last)]
    at_c = heard(members["C"], last)
    assert at_b == at_c
    for name in "BC":
        assert [text for sender, text in at_b if sender == name] == [f"{name}{number}" for number in range(2 * LINES)]
    of_the_dead = [text for sender, text in at_b if sender == "A"]
    assert of_the_dead == [f"A{number}" for number in range(len(of_the_dead))]
