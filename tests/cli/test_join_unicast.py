"""`pygroups join --profile unicast`: two processes without a group."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.standard_error import on_time
from tests.patience import patience

JOIN = [sys.executable, "-m", "pygroups", "join", "--profile", "unicast"]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*JOIN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


def read(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_lines_go_to_the_process_at_a_place_and_come_back(transport: str, tmp_path: Path) -> None:
    here, there = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    more = ("--transport", transport, "--journal", str(tmp_path))
    one = started("--name", "one", "--bind", here, "--to", there, *more)
    other = started("--name", "other", "--bind", there, "--to", here, "--leave-at-eof", *more)
    try:
        assert one.stdin is not None
        one.stdin.write(b"hello\nagain\n")
        assert [(event["from"], event["number"], event["text"]) for event in (read(other), read(other))] == [
            ("one", 1, "hello"),
            ("one", 2, "again"),
        ]
        out, err = other.communicate(b"answer\n", timeout=patience(120))
        assert (other.returncode, on_time(err)) == (0, b"")
        assert read(one) == {
            "event": "message",
            "from": "other",
            "number": 1,
            "view": None,
            "position": None,
            "text": "answer",
        }
        assert json.loads(out.splitlines()[-1]) == {"event": "left", "reason": "left", "unknown": []}
        one.terminate()
        out, err = one.communicate(timeout=patience(120))
        assert (one.returncode, on_time(err)) == (0, b"")
    finally:
        for process in (one, other):
            if process.poll() is None:
                process.kill()
            process.communicate()
    assert {path.parent.name for path in tmp_path.iterdir()} == {tmp_path.name}
    assert [path.name for path in tmp_path.iterdir()] == ["-"]


@pytest.mark.slow
def test_messages_to_a_killed_process_are_told() -> None:
    here, there = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    one = started("--bind", here, "--to", there, "--stats", "0.05")
    other = started("--name", "other", "--bind", there)
    try:
        assert one.stdin is not None
        one.stdin.write(b"hello\n")
        assert read(other)["text"] == "hello"
        other.send_signal(signal.SIGSTOP)  # its kernel takes what comes, and the process acknowledges nothing
        one.stdin.write(b"lost\n")
        while not read(one)["stats"]["gauges"]["unicast2.sent"]:
            pass
        other.kill()
        while (event := read(one))["event"] == "stats":
            pass
        assert event["numbers"][-1] == 2  # perhaps 1 too: its acknowledgement may not have left
        assert event == {"event": "undelivered", "to": "other", "numbers": event["numbers"]}
    finally:
        for process in (one, other):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("orders",), "pygroups: --profile unicast has no group: leave out the name of the group"),
        (("--leave-at-eof",), "--leave-at-eof needs --to HOST:PORT"),
        (("--discovery", "dir:/tmp/x"), "--discovery needs a group, and profile 'unicast' has none"),
        (("--to", "nowhere", "--bind", "127.0.0.1:0"), "to 'nowhere' does not name a process"),
    ],
)
def test_wrong_calls_are_one_line(arguments: tuple[str, ...], sentence: str) -> None:
    done = subprocess.run([*JOIN, *arguments], capture_output=True, input=b"line\n", timeout=patience(120), check=False)
    assert done.returncode == 2 and sentence in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1 and done.stdout == b""
