"""Processes that are killed and start again, where a majority decides each view: real processes and journals."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.uniform_group import Process, group_name, histories, killed_at_once, rows_of, until
from tests.e2e.group import audit, broken

Start = Callable[..., Process]
AGO = 60.0  # seconds until a group goes on, on a busy machine

pytestmark = pytest.mark.slow


@pytest.fixture
def group() -> Iterator[str]:
    with group_name() as name:
        yield name


@pytest.fixture
def start(group: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a process.  All are killed in the end."""
    with ExitStack() as stack:

        def started(name: str, **options: Any) -> Process:
            process = Process(group, name, tmp_path, **options)
            stack.callback(process.kill)
            return process

        yield started


def in_one_view(start: Start, names: str, **options: Any) -> dict[str, Process]:
    """These processes, in one view."""
    processes: dict[str, Process] = {}
    for name in names:
        processes[name] = start(name, **options)
        until(lambda: all(one.is_in_view_with(*processes) for one in processes.values()), AGO)
    return processes


def same_order(*processes: Process) -> None:
    """The last one has had its messages in the order in which each other one had them, with nothing between."""
    *others, last = [process.messages for process in processes]
    for had in others:
        begin = had.index(last[0])
        both = min(len(had) - begin, len(last))
        assert both
        assert had[begin : begin + both] == last[:both]


def test_three_processes_that_expect_each_other_found_one_group(start: Start, tmp_path: Path) -> None:
    """They find each other by addresses.  One alone waits, and its log says so."""
    places = [f"127.0.0.1:{port}" for port in free_ports(3)]
    found = {"discovery": ",".join(places), "expect": 3}
    a = start("A", bind=places[0], **found)
    until(lambda: "the join waits: the first view needs more than half of the 3 processes" in a.log, AGO)
    assert not a.lines("view")
    others = [start(name, bind=place, **found) for name, place in zip("BC", places[1:], strict=True)]
    until(lambda: all(one.is_in_view_with("A", "B", "C") for one in (a, *others)), AGO)
    assert len({history for one in (a, *others) for history in histories(tmp_path / "journal", one.address)}) == 1


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def test_a_group_that_lost_its_majority_goes_on_when_one_process_is_back(start: Start, tmp_path: Path) -> None:
    """Three of five are killed at once, and one of them returns with its folder."""
    members = in_one_view(start, "ABCDE", busy=True)
    a, b, c = (members[name] for name in "ABC")
    until(lambda: all(len(one.messages) > 100 for one in members.values()), AGO)
    former = c.address
    killed_at_once(*(members[name] for name in "CDE"))
    until(lambda: a.lines("blocked") and b.lines("blocked"), AGO)
    had = len(a.messages), len(b.messages)
    time.sleep(2)
    assert (len(a.messages), len(b.messages)) == had

    again = start("C", busy=True)
    until(lambda: all(one.is_in_view_with("A", "B", "C") for one in (a, b, again)), AGO)
    assert f"answers for its former incarnation {former}" in again.log
    until(lambda: all(any(again.address in text for text in one.messages) for one in (a, b, again)), AGO)
    until(lambda: len(again.messages) > 100, AGO)
    assert len(a.lines("unblocked")) == len(b.lines("unblocked")) == 1
    killed_at_once(a, b, again)
    same_order(a, b)
    same_order(a, b, again)
    journal = tmp_path / "journal"
    assert histories(journal, again.address) == histories(journal, a.address)
    assert len(histories(journal, a.address)) == 1
    answers = [row["stage"] for row in rows_of(journal, former, "flush")]
    assert answers[-2:] == ["collect", "accepted"]


def judged_right(journal: Path, *rules: str) -> None:
    """No promise is broken, and these rules have judged something."""
    _, found = audit(journal)
    assert broken(found) == []
    verdicts = {one["name"]: one["verdict"] for one in found["promises"]}
    assert [verdicts[rule] for rule in rules] == ["held"] * len(rules)


@pytest.mark.long
def test_a_group_whose_members_all_return_is_born_anew(start: Start, tmp_path: Path) -> None:
    """While one is missing the others wait, and each says which one."""
    journal = tmp_path / "journal"
    members = in_one_view(start, "ABC", busy=True)
    gone = members["C"].address
    first = histories(journal, gone)
    killed_at_once(*members.values())
    again = [start(name, busy=True) for name in "AB"]
    until(lambda: all(f"missing: {gone}" in one.log for one in again), AGO)
    assert not any(one.lines("view") for one in again)
    again.append(start("C", busy=True))
    until(lambda: all(one.is_in_view_with("A", "B", "C") for one in again), AGO)
    until(lambda: all(len(one.messages) > 100 for one in again), AGO)
    second = {history for one in again for history in histories(journal, one.address)}
    assert len(first) == len(second) == 1
    assert first != list(second)
    killed_at_once(*again)
    judged_right(journal, "primary-chain")


def test_a_process_that_was_stopped_joins_again_by_itself(start: Start, tmp_path: Path) -> None:
    """The others have gone on without it.  With `rejoin=True` its channel goes on as a new incarnation."""
    members = in_one_view(start, "ABC", busy=True, rejoin=True)
    c = members["C"]
    first = c.lines("view")[-1]
    os.kill(c.process.pid, signal.SIGSTOP)
    until(lambda: members["A"].is_in_view_with("A", "B"), AGO)
    os.kill(c.process.pid, signal.SIGCONT)
    until(lambda: c.lines("left"), AGO)
    until(lambda: c.lines("view")[-1] != first, AGO)  # the others may have the new view before C has it
    until(lambda: all(one.is_in_view_with("A", "B", "C") for one in members.values()), AGO)
    again = c.lines("view")[-1]
    (now,) = [address for address in again[1:] if address.startswith("C@")]
    assert now not in first
    assert c.lines("left")[0][0] == "excluded"
    until(lambda: any(now in text for text in members["A"].messages), AGO)
    had = len(c.messages)
    until(lambda: len(c.messages) > had + 100, AGO)


def test_a_process_with_an_empty_folder_does_not_count(start: Start, tmp_path: Path) -> None:
    """Two of three are killed.  One starts again without its folder: the third one stays blocked until it has it."""
    members = in_one_view(start, "ABC")
    c = members["C"]
    killed_at_once(members["A"], members["B"])
    until(lambda: c.lines("blocked"), AGO)
    lost = start("A", journal=str(tmp_path / "empty"))
    until(lambda: "the join waits for an answer of" in lost.log, AGO)
    assert "answers for its former incarnation" not in lost.log
    assert not lost.lines("view")
    assert not c.lines("unblocked")
    lost.kill()
    start("A")
    until(lambda: c.is_in_view_with("A", "C"), AGO)
    assert len(c.lines("unblocked")) == 1
