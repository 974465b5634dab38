"""`pygroups join` on a terminal: sentences, no echo, Ctrl-D, a window that is closed; and as a program meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.standard_error import on_time
from tests.cli.terminal import Terminal
from tests.patience import patience

pytestmark = pytest.mark.slow
Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_terminal(*arguments: str) -> Terminal:
        opened.append(Terminal("join", *arguments, "--discovery", f"dir:{tmp_path / 'groups'}"))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_two_people_chat(terminal: Open) -> None:
    ada = terminal("chat", "--name", "Ada")
    ada.shows("-- you are Ada in group chat, alone so far; each line you type goes to all members")
    bob = terminal("chat", "--name", "Bob")
    bob.shows("-- you are Bob in group chat, with Ada; ")
    ada.shows("-- Bob joined; members: Ada, Bob")
    ada.type("grüße  an\talle\n")
    bob.shows("Ada: grüße  an?alle\r\n")
    bob.type("danke\n")
    ada.shows("Bob: danke")
    bob.type("\x04")
    assert bob.ended() == 0
    assert bob.lines[-1] == "-- you have left the group"
    ada.shows("-- Bob left; members: Ada")
    assert "Ada: " not in ada.screen
    assert "Bob: " not in bob.screen
    assert "{" not in ada.screen + bob.screen
    assert ada.screen.count("grüße") == 1


def test_json_is_there_on_a_terminal_too(terminal: Open) -> None:
    ada = terminal("chat", "--name", "Ada", "--json")
    ada.shows('"event":"view"')
    ada.type("x\n")
    ada.shows('"event":"message"')
    ada.type("\x04")
    assert ada.ended() == 0
    events = [json.loads(line) for line in ada.lines if line.startswith("{")]
    assert [event["event"] for event in events] == ["view", "message", "left"]


def test_a_line_to_somebody_who_is_not_there_ends_nothing(terminal: Open) -> None:
    ada = terminal("chat", "--name", "Ada", "--to", "Bob")
    ada.shows("-- you are Ada")
    ada.type("hello\n")
    ada.shows("pygroups: the line was not sent: the group has no member 'Bob'")
    bob = terminal("chat", "--name", "Bob")
    ada.shows("-- Bob joined")
    ada.type("hello again\n")
    bob.shows("Ada: hello again")
    ada.type("\x04")
    assert ada.ended() == 0


def test_a_closed_window_is_a_leave_and_not_a_death(terminal: Open) -> None:
    ada = terminal("chat", "--name", "Ada")
    ada.shows("-- you are Ada")
    bob = terminal("chat", "--name", "Bob")
    ada.shows("-- Bob joined")
    bob.hang_up()
    assert bob.process.wait(30) == 0
    ada.shows("-- Bob left; members: Ada")
    assert "does not answer" not in ada.screen


def test_in_the_background_of_a_shell_it_reads_nothing_and_stays(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pygroups join g --name A --discovery dir:{tmp_path} & echo pid $!.; wait"
    shell = Terminal.of("bash", "-c", f"set -m; {command}")
    try:
        shell.shows("-- you are A in group g, alone so far")
        other = joined(tmp_path)
        shell.shows("joined; members: A, ")
        other.kill()
        other.communicate()
        shell.shows("left; members: A")
    finally:
        os.kill(int(re.findall(r"pid (\d+)\.", shell.screen)[0]), signal.SIGTERM)
        assert shell.ended() == 0
        shell.close()


def joined(folder: Path, *, ignore_hangup: bool = False) -> subprocess.Popen[bytes]:
    """A member in pipes, when it has printed its first view."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pygroups", "join", "g", "--discovery", f"dir:{folder}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) if ignore_hangup else None,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "view"
    return process


def test_a_terminal_and_a_pipe_are_told_what_a_join_waits_for(terminal: Open, tmp_path: Path) -> None:
    silent = joined(tmp_path / "groups")
    os.kill(silent.pid, signal.SIGSTOP)  # it has the group, and answers nobody
    try:
        ada = terminal("g", "--name", "Ada")
        command = [sys.executable, "-m", "pygroups", "join", "g", "--discovery", f"dir:{tmp_path / 'groups'}"]
        piped = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        name = re.escape(os.uname().nodename)
        pattern = rf"in group 'g': the join waits for an answer of {name}\S*@\w+ \(for \d+ s\)"
        ada.shows("waits for an answer of ")
        ada.shows(" s)\r\n")
        assert re.search(f"pygroups: Ada {pattern}", ada.screen), ada.screen
        ada.type("\x03")
        assert ada.ended() == 0
        assert piped.stderr is not None
        line = piped.stderr.readline().decode()
        assert re.fullmatch(rf"pygroups: {name}\S* {pattern}\n", line), line
        piped.send_signal(signal.SIGTERM)
        out, rest = piped.communicate(timeout=patience(120))
        assert out == b""
        assert all(b"the join waits" in one for one in rest.splitlines()), rest
    finally:
        silent.kill()
        silent.communicate()


def test_sighup_leaves_in_good_order_unless_it_is_to_be_ignored(tmp_path: Path) -> None:
    member = joined(tmp_path)
    member.send_signal(signal.SIGHUP)
    out, err = member.communicate(timeout=patience(120))
    assert (member.returncode, on_time(err)) == (0, b"")
    assert json.loads(out.splitlines()[-1])["event"] == "left"

    member = joined(tmp_path, ignore_hangup=True)
    member.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert member.poll() is None
    member.send_signal(signal.SIGTERM)
    member.communicate(timeout=patience(120))
    assert member.returncode == 0


def test_whoever_was_stopped_for_too_long_comes_back_by_a_merge(terminal: Open) -> None:
    ada = terminal("chat", "--name", "Ada")
    ada.shows("-- you are Ada")
    bob = terminal("chat", "--name", "Bob")
    bob.shows("-- you are Bob")
    os.kill(bob.process.pid, signal.SIGSTOP)
    ada.shows("-- Bob left; members: Ada")
    ada.type("while Bob is away\n")
    ada.type("\n")
    os.kill(bob.process.pid, signal.SIGCONT)
    for one in (ada, bob):
        one.shows(" are one group again; members: Ada, Bob")
    bob.shows("messages of Ada went only to Ada")
    bob.type("back\n")
    ada.shows("Bob: back")
    bob.type("\x04")
    assert bob.ended() == 0


WITHOUT_MERGING = """
from pygroups.__main__ import main
from pygroups.layers.profiles import PROFILES
from tests.merging import without_merging

PROFILES["total"] = without_merging("total")
raise SystemExit(main())
"""


def test_whoever_is_put_out_is_told_why_and_ends_with_1(tmp_path: Path) -> None:
    """In a stack without MERGE2 a member that was stopped for too long is put out, as one is by policy."""
    options = ("join", "chat", "--discovery", f"dir:{tmp_path}", "--name")
    ada = Terminal.of(sys.executable, "-c", WITHOUT_MERGING, *options, "Ada")
    bob = ada
    try:
        ada.shows("-- you are Ada")
        bob = Terminal.of(sys.executable, "-c", WITHOUT_MERGING, *options, "Bob")
        bob.shows("-- you are Bob")
        os.kill(bob.process.pid, signal.SIGSTOP)
        ada.shows("-- Bob left; members: Ada")
        os.kill(bob.process.pid, signal.SIGCONT)
        assert bob.ended() == 1
    finally:
        ada.close()
        bob.close()
    assert bob.lines[-1].startswith("pygroups: the other members removed this member (excluded)")
    assert bob.screen.count("removed this member (excluded)") == 1
    assert "removed this member from the group" not in bob.screen  # the library's words for the same
