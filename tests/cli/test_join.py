"""`pygroups join`: what it prints, what it sends, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.standard_error import on_time
from tests.disks import fill, full_disk
from tests.e2e.group import until
from tests.patience import patience

AND_GOES_ON = "continues without a journal"
JOIN = [sys.executable, "-m", "pygroups", "join"]


class Shell:
    """A running `pygroups join`."""

    def __init__(self, folder: Path, *arguments: str, stdin: Any = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [*JOIN, *arguments, "--discovery", f"dir:{folder}"],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def type(self, text: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def event(self, kind: str) -> dict[str, Any]:
        """The next event of this kind; others are skipped."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == kind:
                return event
        raise AssertionError(f"no {kind!r} any more; it said {self.process.stderr.read()!r}")  # type: ignore[union-attr]

    def view_of(self, *names: str) -> dict[str, Any]:
        while sorted((view := self.event("view"))["members"]) != sorted(names):
            pass
        return view

    def end(self, *, send: int | None = None) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, the events that were not read, and what it said on standard error."""
        if send is not None:
            self.process.send_signal(send)
        assert self.process.stdout is not None and self.process.stderr is not None
        if self.process.stdin is not None:
            self.process.stdin.close()
        out = self.process.stdout.read()  # communicate() would miss what event() has read ahead
        err = self.process.stderr.read()
        self.process.wait(timeout=patience(120))
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], on_time(err).decode()


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Any]:
    running: list[Shell] = []

    def start(*arguments: str, folder: str = "groups", **options: Any) -> Shell:
        running.append(Shell(tmp_path / folder, *arguments, **options))
        return running[-1]

    yield start
    for shell in running:
        if shell.process.poll() is None:
            shell.process.kill()
        shell.process.wait()
        for pipe in (shell.process.stdin, shell.process.stdout, shell.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def refused(*arguments: str) -> str:
    """The one line that a wrong call is answered with."""
    done = subprocess.run([*JOIN, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=patience(120))
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.mark.slow
@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0"])
def test_a_member_on_all_addresses_prints_the_address_that_the_others_get(shells: Any, bind: str) -> None:
    member = shells("g", "--name", "A", "--bind", bind, "--insecure")
    try:
        member.event("view")
    except AssertionError as error:
        assert "and none of them leads to other machines: give --advertise" in str(error)  # a machine without a network
        return
    code, _, err = member.end(send=signal.SIGTERM)
    assert code == 0
    assert re.fullmatch(
        r"pygroups: A@[0-9a-f]{16} listens on all addresses of this machine \(\S+\), and announces \S+:\d+ as the "
        r"address for the other members; --advertise names another address\n",
        err,
    )
    named = shells("h", "--name", "A", "--bind", bind, "--insecure", "--advertise", "127.0.0.1:0")
    named.event("view")
    assert named.end(send=signal.SIGTERM)[2] == ""


@pytest.mark.slow
def test_lines_become_messages_and_events_become_json(shells: Any) -> None:
    a = shells("g", "--name", "A")
    own = a.event("view")
    assert list(own) == [
        *("event", "id", "members", "addresses", "coordinator", "primary", "joined", "left", "transitional")
    ]
    b = shells("g", "--name", "B")
    view = a.view_of("A", "B")
    assert b.event("view") == {**view, "transitional": ["B"]}
    assert view["joined"] == ["B"]
    assert view["addresses"][0] == own["addresses"][0]
    assert view["id"][1] == own["addresses"][0]
    a.type("grüße\n\n".encode() + b"\xff\xfe\r\n")
    expected = [{"text": "grüße"}, {"text": ""}, {"base64": "//4N"}]
    for position, content in enumerate(expected):
        message = {"event": "message", "from": "A", "number": position + 1, "view": view["id"], "position": position}
        assert b.event("message") == {**message, **content}
        assert a.event("message") == {**message, **content}
    code, events, err = b.end(send=signal.SIGTERM)
    assert (code, events, err) == (0, [{"event": "left", "reason": "left", "unknown": []}], "")
    assert a.view_of("A")["left"] == ["B"]
    code, events, err = a.end(send=signal.SIGINT)
    assert (code, events[-1]["event"], err) == (0, "left", "")


@pytest.mark.slow
def test_at_the_end_of_input_it_stays_or_leaves(shells: Any) -> None:
    staying = shells("g", "--name", "A", stdin=subprocess.DEVNULL)
    staying.event("view")
    leaving = shells("g", "--name", "B", "--leave-at-eof", "--timeout", "20")
    code_of = leaving.process.communicate(b"one\ntwo\nthree without an end", timeout=patience(120))
    assert leaving.process.returncode == 0
    assert [json.loads(line)["event"] for line in code_of[0].splitlines()] == ["view", *["message"] * 3, "left"]
    assert [staying.event("message")["text"] for _ in range(3)] == ["one", "two", "three without an end"]
    assert staying.process.poll() is None


@pytest.mark.slow
def test_a_line_to_one_member_alone(shells: Any) -> None:
    a = shells("g", "--name", "A")
    a.event("view")
    b = shells("g", "--name", "B")
    b.event("view")
    c = shells("g", "--name", "C", "--to", "B", "--stats", "0.2")
    c.view_of("A", "B", "C")
    c.type(b"psst\n")
    message = b.event("message")
    assert (message["from"], message["text"], message["number"], message["position"]) == ("C", "psst", 1, None)
    stats = c.event("stats")["stats"]
    assert stats["members"] == 3
    assert stats["tables"]["nakack.streams.by_name"]["limit"] == 3
    assert stats["memory_bound"] == sum(stats["memory"].values())
    b.end(send=signal.SIGTERM)
    c.view_of("A", "C")
    c.type(b"anybody?\n")
    code, _, err = c.end()
    assert (code, err) == (1, "pygroups: the line was not sent: the group has no member 'B'\n")
    assert [event["event"] for event in a.end(send=signal.SIGTERM)[1] if event["event"] == "message"] == []


@pytest.mark.slow
def test_quiet_prints_no_events(shells: Any) -> None:
    shell = shells("g", "--name", "A", "--quiet", "--leave-at-eof")
    out, err = shell.process.communicate(b"x\n" * 1_000, timeout=patience(120))
    assert (shell.process.returncode, out, on_time(err)) == (0, b"", b"")


@pytest.mark.slow
def test_a_taken_name_and_another_profile_are_refused_with_2(shells: Any) -> None:
    shells("g", "--name", "A").event("view")
    for arguments, word in ((("--name", "A"), "which is alive"), (("--name", "B", "--profile", "fifo"), "fifo")):
        code, events, err = shells("g", *arguments).end()
        assert (code, events) == (2, [])
        assert word in err
        assert len(err.splitlines()) == 1


ANOTHER_WINDOW = """
import sys

import pygroups
from pygroups.cli.main import main

config = pygroups.Config
pygroups.Config = lambda **options: config(window=1 << 40, link_bytes=1 << 40, payload_max=1 << 40, **options)
sys.exit(main())
"""


@pytest.mark.slow
def test_other_limits_are_refused_with_2_and_both_values(shells: Any, tmp_path: Path) -> None:
    """The command has no option for limits: a program that calls it has other ones, here very large ones."""
    shells("g", "--name", "A").event("view")
    arguments = ("join", "g", "--name", "B", "--discovery", f"dir:{tmp_path / 'groups'}")
    command = [sys.executable, "-c", ANOTHER_WINDOW, *arguments]
    joiner = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(120))
    assert (joiner.returncode, joiner.stdout) == (2, ""), joiner.stderr
    assert f"the group has window={1 << 20}, the joiner window={1 << 40}" in joiner.stderr
    assert f"the group has payload_max={64 << 20}, the joiner payload_max={1 << 40}" in joiner.stderr


@pytest.mark.slow
def test_whoever_is_killed_leaves_the_others_a_view_without_it(shells: Any) -> None:
    a = shells("g", "--name", "A")
    a.event("view")
    b = shells("g", "--name", "B")
    b.view_of("A", "B")
    a.process.kill()
    assert b.event("suspected") == {"event": "suspected", "member": "A"}
    assert b.view_of("B")["coordinator"] == "B"


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly(shells: Any) -> None:
    shell = shells("g", "--name", "A")
    shell.event("view")
    shell.process.stdout.close()
    deadline = time.monotonic() + patience(20)
    while shell.process.poll() is None and time.monotonic() < deadline:
        shell.type(b"x\n")
        time.sleep(0.05)
    assert shell.process.wait(5) == 141
    assert on_time(shell.process.stderr.read()) == b""
    shell.process.stdout = None


@pytest.mark.slow
def test_a_reader_that_does_not_read_does_not_stop_the_member(shells: Any) -> None:
    a = shells("g", "--name", "A")
    b = shells("g", "--name", "B")
    b.view_of("A", "B")
    b.type(b"".join(b"%0100d\n" % number for number in range(3_000)))  # more than a pipe holds; nobody reads A's
    messages = [b.event("message")["number"] for _ in range(3_000)]
    assert messages == list(range(1, 3_001))
    code, events, _ = b.end(send=signal.SIGTERM)
    assert (code, events[-1]["event"]) == (0, "left")
    code, events, _ = a.end(send=signal.SIGTERM)
    assert code == 0
    assert sum(event["event"] == "message" for event in events) == 3_000


@pytest.mark.slow
def test_a_journal_is_written_and_a_signal_while_joining_ends_it(shells: Any, tmp_path: Path) -> None:
    shell = shells("g", "--name", "A", "--journal", str(tmp_path / "journal"), "--journal-payloads")
    address = shell.event("view")["addresses"][0]
    assert (tmp_path / "journal" / "g" / address / "000000.journal").stat().st_size > 100
    os.kill(shell.process.pid, signal.SIGSTOP)  # it lives, and answers nobody
    waiting = shells("g", "--name", "B")
    until("B can be found, so it joins", lambda: any((tmp_path / "groups" / "g").glob("B@*")))
    code, events, err = waiting.end(send=signal.SIGTERM)
    assert (code, events, err) == (0, [], "")
    os.kill(shell.process.pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("then", ["continue", "leave"])
def test_on_a_full_disk_it_goes_on_or_leaves_and_its_exit_code_is_1(shells: Any, tmp_path: Path, then: str) -> None:
    with full_disk(tmp_path / "disk") as disk:
        shell = shells("g", "--name", "A", "--journal", str(disk), "--on-journal-lost", then)
        shell.view_of("A")
        fill(disk)
        lost = None
        for _ in range(500):  # some records fit into the last page
            shell.type(b"line\n")
            event = json.loads(shell.process.stdout.readline())
            if event["event"] != "message":
                lost = event
                break
        assert lost is not None and lost["event"] == "journal"
        assert lost["reason"].endswith("cannot be written: No space left on device")
        if then == "continue":
            shell.type(b"after it\n")
            while shell.event("message")["text"] != "after it":
                pass
        code, events, err = shell.end(send=signal.SIGTERM if then == "continue" else None)
        assert code == 1
        assert events[-1] == {
            "event": "left",
            "reason": "left" if then == "continue" else "journal lost",
            "unknown": [],
        }
        assert [event["event"] for event in events].count("journal") == 0
        (line,) = err.splitlines()
        assert line == f"pygroups: {lost['reason']}; this member {'leaves' if then == 'leave' else AND_GOES_ON}"


@pytest.mark.slow
def test_a_trace_goes_to_standard_error_and_follows_a_message_to_another_member(shells: Any) -> None:
    one = shells("g", "--name", "A", "--trace", "--leave-at-eof")
    one.view_of("A")
    other = shells("g", "--name", "B", "--trace")
    address = other.view_of("A", "B")["addresses"][0]
    one.type(b"hello\n")
    assert other.event("message")["text"] == "hello"
    _, events, err = one.end()
    assert all(re.match(r"\d+\.\d{6}  A  (up  |down) +\w+ > \w+ +\w", line) for line in err.splitlines())
    assert [event["text"] for event in events if event["event"] == "message"] == ["hello"]
    _, _, heard = other.end(send=signal.SIGTERM)
    lines = [line.split() for text in (err, heard) for line in text.splitlines() if f"{address}#1+1" in line]
    down = [line[3:6] for line in lines if line[1:3] == ["A", "down"]]
    assert down[0] == ["top", ">", "statetransfer"] and down[-1] == ["discovery", ">", "network"]
    up = [line for line in lines if line[1:3] == ["B", "up"]]
    assert up[0][3:6] == ["network", ">", "discovery"] and up[-1][5:7] == ["application", "Delivered"]
    times = [float(line[0]) for line in lines if line[1:3] in (["A", "down"], ["B", "up"])]
    assert times == sorted(times)  # one clock for all processes of the machine


@pytest.mark.slow
def test_a_line_that_is_too_long_is_told_by_its_number(shells: Any) -> None:
    shell = shells("g", "--name", "A", "--leave-at-eof")
    _, err = shell.process.communicate(b"fine\n" + b"x" * ((64 << 20) + 1) + b"\n", timeout=patience(60))
    assert shell.process.returncode == 2
    words = b"pygroups: line 2 of the input is over the limit of a message, 67,108,864 bytes: split the line\n"
    assert on_time(err) == words


@pytest.mark.slow
def test_a_line_that_is_larger_than_a_run_is_one_message(shells: Any) -> None:
    shell = shells("g", "--name", "A", "--leave-at-eof")
    out, err = shell.process.communicate(b"x" * 300_000 + b"\nfine\n", timeout=patience(120))
    assert (shell.process.returncode, on_time(err)) == (0, b"")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["text"] for event in events if event["event"] == "message"] == ["x" * 300_000, "fine"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--expect", "3"), "--expect works only where a majority decides each view"),
        (("--rejoin", "--profile", "unicast"), "--rejoin needs a group, and profile 'unicast' has none"),
        (("--min-members", "0"), "--min-members 0 must be a number of members from 1 to"),
        (("--min-members", "2", "--profile", "unicast"), "--min-members needs a group"),
        (("--secret-file", "/nonexistent/x"), "the secret '/nonexistent/x' cannot be read: No such file or directory"),
        (("--secret-file", "/dev/null"), "the secret '/dev/null' is not a file"),
        (("--transport", "pigeon"), "there is no transport 'pigeon'"),
        (("--stats", "0"), "--stats 0.0 must be"),
        (("--leave-at-eof", "--timeout", "-1"), "--timeout -1.0 must be"),
        (("--timeout", "5"), "--leave-at-eof"),
        (("a/b",), "'a/b' cannot name a group"),
        (("--bind", "0.0.0.0:1"), "--bind '0.0.0.0:1' can be reached from other machines"),
        (("--bind", "0.0.0.0:1"), "--insecure"),
        (("--journal-payloads",), "--journal-payloads needs --journal DIR"),
        (("--on-journal-lost", "leave"), "--on-journal-lost needs --journal DIR"),
        (("--journal", "/proc/journal"), "give --journal a folder"),
        (("--journal", ""), "--journal '' names no folder: give the path of a folder"),
        (
            ("--late-join-handler", "/tmp/x"),
            "--late-join-handler is for --profile gossip",
        ),
        (("--profile", "gossip", "--late-join-handler", ""), "--late-join-handler '' names no folder"),
        (("--catch-up",), "--catch-up is for --profile gossip"),
        (("--discovery", "dns:x"), "names no address that a process can listen on: write dns:name:port"),
        (("--discovery", "dir:/x", "--discovery", "dir:/y"), "names two folders with dir:"),
    ],
)
def test_wrong_calls_are_one_line(arguments: tuple[str, ...], sentence: str) -> None:
    line = refused(*arguments)
    assert sentence in line
    assert not re.search(r"\w=", line)  # the command line has flags, and no arguments


def test_the_help_says_how_it_ends_and_names_nothing_that_is_not_built() -> None:
    told = subprocess.run([*JOIN, "--help"], capture_output=True, text=True, timeout=patience(120), check=True).stdout
    text = " ".join(told.split())
    for words in ("Ctrl-D leaves", "stays in the group", "SIGHUP", "Exit code 1:", "--json", "pygroups join orders"):
        assert words in text
    for words in ("ot built", "pygroups demo"):
        assert words not in text


def test_an_output_on_a_full_disk_ends_the_command_with_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pygroups", "join", "g", "--discovery", f"dir:{tmp_path / 'groups'}"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=patience(120), check=False
        )
    assert (done.returncode, done.stderr) == (1, b"pygroups: the output cannot be written: No space left on device\n")
    assert not (tmp_path / "groups/g").exists()
