"""`pygroups join` in several shells, as a user meets it: typing, kill -9, coming back, stopping, leaving."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from pygroups import Config
from tests.cli.standard_error import on_time
from tests.e2e.group import until
from tests.e2e.shells import Said, Shell, Shells, view_of
from tests.patience import patience

pytestmark = pytest.mark.slow
TIMEOUT: Final = Config().heartbeat_timeout
TICK_SECONDS: Final = 0.02


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Shells]:
    with Shells(tmp_path) as shells:
        yield shells


def type_for(seconds: float, typing: Sequence[Shell]) -> None:
    """Type lines into all of them, in turn, for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for shell in typing:
            shell.type(f"{shell.name} types line {len(shell.typed) + 1}")
        time.sleep(TICK_SECONDS)


def all_of(shell: Shell) -> list[Said]:
    """What others have to print of it."""
    return [(shell.name, number, text) for number, text in enumerate(shell.typed, 1)]


def of(name: str, said: Sequence[Said]) -> list[Said]:
    return [one for one in said if one[0] == name]


def heard_everything(listeners: Sequence[Shell], typists: Sequence[Shell]) -> None:
    """Each listener has all that each typist typed, once and in order."""
    lines = {shell.name: all_of(shell) for shell in typists}
    until(
        "all lines are everywhere",
        lambda: all(len(of(name, shell.said)) >= len(lines[name]) for shell in listeners for name in lines),
    )
    for shell in listeners:
        for name in lines:
            assert of(name, shell.said) == lines[name], f"{shell.name} printed other lines of {name}"


def errors(shell: Shell) -> str:
    """Its standard error, without the warnings of a process that was stopped, and of a group that was in two parts."""
    lines = on_time(shell.errors.encode()).decode().splitlines(keepends=True)
    apart = "there is a second group with the name " if shell.of_kind("merge") else None
    return "".join(line for line in lines if apart is None or apart not in line)


def leave(leaving: Sequence[Shell]) -> None:
    for shell in leaving:
        shell.signal(signal.SIGTERM)
    for shell in leaving:
        assert shell.ended() == 0
        assert errors(shell) == ""
        assert shell.events[-1] == {"event": "left", "reason": "left", "unknown": []}


def test_what_is_typed_anywhere_is_printed_everywhere_in_one_order(shells: Shells) -> None:
    four = shells.start("A", "B", "C", "D")
    type_for(1, four)
    heard_everything(four, four)
    assert all(shell.said == four[0].said for shell in four)
    positions = [(event["view"], event["position"]) for event in four[0].of_kind("message")]
    for shell in four[1:]:
        assert [(event["view"], event["position"]) for event in shell.of_kind("message")] == positions
    leave(four)


def test_after_kill_9_of_the_first_the_others_go_on_and_it_comes_back_as_a_new_member(shells: Shells) -> None:
    first, *others = shells.start("A", "B", "C", "D")
    type_for(0.5, [first, *others])
    first.signal(signal.SIGKILL)
    killed = time.monotonic()
    type_for(1, others)
    for shell in others:
        view_of(shell, "B", "C", "D")
        assert next_message_at(shell) - killed < patience(1)
    heard_everything(others, others)
    assert all(shell.said == others[0].said for shell in others)  # the last lines of the dead too: at all or at none
    dead = of("A", others[0].said)
    assert dead == all_of(first)[: len(dead)]

    again = shells.open("A")
    for shell in (*others, again):
        view_of(shell, "B", "C", "D", "A")
    assert again.address != first.address
    type_for(0.3, [again])
    heard_everything([again], [again])
    expected = dead + all_of(again)
    until("its new lines", lambda: all(len(of("A", shell.said)) >= len(expected) for shell in others))
    assert [of("A", shell.said) for shell in others] == [expected] * 3
    leave([*others, again])


def next_message_at(shell: Shell) -> float:
    """When it printed the first message after its last view."""
    begin = shell.events.index(shell.view)
    until("a message in the new view", lambda: any(one["event"] == "message" for one in shell.events[begin:]))
    return next(
        when
        for when, event in zip(shell.times[begin:], shell.events[begin:], strict=False)
        if event["event"] == "message"
    )


def test_the_name_of_a_living_member_is_refused_in_one_line(shells: Shells) -> None:
    first, second = shells.start("A", "B")
    other = shells.open("B")
    assert other.ended() == 2
    assert other.events == []
    assert errors(other).count("\n") == 1
    assert "B" in errors(other)
    type_for(0.2, [first, second])
    heard_everything([first, second], [first, second])
    assert [event["members"] for event in first.of_kind("view")] == [["A"], ["A", "B"]]
    leave([second])
    first.signal(signal.SIGTERM)
    assert first.ended() == 0
    assert errors(first).count("\n") == 1 and "may not join: the name 'B' belongs to" in errors(first)


def test_sigterm_ends_one_cleanly_and_the_others_suspect_nobody(shells: Shells) -> None:
    first, second, third = shells.start("A", "B", "C")
    type_for(0.5, [first, second, third])
    leave([first])
    view_of(second, "B", "C")
    assert second.view["left"] == ["A"]
    type_for(0.3, [second, third])
    heard_everything([second, third], [first, second, third])
    assert not second.of_kind("suspected")
    second.signal(signal.SIGINT)  # as Ctrl-C
    assert (second.ended(), errors(second)) == (0, "")
    leave([third])


def test_who_is_stopped_for_too_long_is_left_out_and_comes_back_by_a_merge(tmp_path: Path) -> None:
    with Shells(tmp_path, "first-stops") as one, Shells(tmp_path, "second-stops") as another:
        three, also = one.start("A", "B", "C"), another.start("A", "B", "C")
        type_for(0.3, three + also)
        heard_everything(three, three)
        heard_everything(also, also)
        stopped = (three[0], also[1])
        others = (three[1:], [also[0], also[2]])
        for shell in stopped:
            shell.signal(signal.SIGSTOP)
        type_for(TIMEOUT + 3, [*others[0], *others[1]])
        for shells in others:
            for shell in shells:
                view_of(shell, *[other.name for other in shells])
            heard_everything(shells, shells)
        for shell in stopped:
            shell.signal(signal.SIGCONT)
        for shells, away, rest in ((three, stopped[0], others[0]), (also, stopped[1], others[1])):
            for shell in shells:
                until("a merge", lambda shell=shell: shell.of_kind("merge"))
                view_of(shell, "A", "B", "C")
            until("its gaps", lambda away=away: len(away.of_kind("gap")) == 2)
            assert {gap["from"] for gap in away.of_kind("gap")} == {shell.name for shell in rest}
            assert not [gap for shell in rest for gap in shell.of_kind("gap")]
        for shells, folder in ((three, one), (also, another)):
            later = folder.open("D")
            for shell in (*shells, later):
                view_of(shell, "A", "B", "C", "D")
            leave([*shells, later])


def test_who_is_stopped_for_less_than_the_timeout_stays_and_misses_nothing(shells: Shells) -> None:
    first, second, third = three = shells.start("A", "B", "C")
    type_for(0.3, three)
    for stopped in (second, first):
        stopped.signal(signal.SIGSTOP)
        type_for(0.4 * TIMEOUT, three)  # what is typed into the stopped one lies in its pipe
        stopped.signal(signal.SIGCONT)
        type_for(0.3, three)
        heard_everything(three, three)
    assert first.said == second.said == third.said
    assert [shell.view["members"] for shell in three] == [["A", "B", "C"]] * 3
    assert [len(shell.of_kind("view")) for shell in three] == [3, 2, 1]
    leave(three)
