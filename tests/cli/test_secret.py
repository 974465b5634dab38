"""`pygroups secret new`, and `pygroups join` with the file that it makes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pygroups.cli.main import main
from pygroups.wire.ring import KEY_NEW, parse_ring
from tests.channel.test_discovery import free_ports
from tests.cli.test_join import shells  # noqa: F401 (a fixture)
from tests.patience import patience

SECRET = (sys.executable, "-m", "pygroups", "secret", "new")


def called(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SECRET, *map(str, arguments)], capture_output=True, text=True, timeout=patience(120), check=False
    )


def test_a_new_file_is_closed_to_others_and_has_one_random_key(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        done = called(tmp_path / "a")
    finally:
        os.umask(old)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert called(tmp_path / "b", "--epoch", "7").returncode == 0
    one, other = (parse_ring((tmp_path / name).read_text(), name) for name in "ab")
    assert (one.sending, other.sending) == (1, 7)
    keys = one.key(1), other.key(7)
    assert keys[0] != keys[1] and {len(key or b"") for key in keys} == {KEY_NEW}


def test_without_a_file_the_line_is_printed_and_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(called().stdout + called("--epoch", "2").stdout)
    assert repr(parse_ring((tmp_path / "s").read_text(), "s")) == "<Ring: epochs 1, 2>"
    before = (tmp_path / "s").read_text()
    done = called(tmp_path / "s")
    assert (done.returncode, (tmp_path / "s").read_text()) == (2, before)
    (line,) = done.stderr.splitlines()
    assert "exists: name another file" in line
    assert called("--epoch", "256").returncode == 2
    assert called(tmp_path / "missing" / "s").returncode == 2


def test_an_empty_name_of_the_file_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty variable names no file: neither the folder of the process, nor a group without a secret."""
    monkeypatch.setenv("PYGROUPS_SECRET_FILE", "")
    assert main(["join", "g"]) == 2
    assert "the name of the secret's file is empty" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_two_shells_with_one_secret_and_a_third_with_another(
    tmp_path: Path,
    transport: str,
    monkeypatch: pytest.MonkeyPatch,
    shells: Any,  # noqa: F811
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert called(ours).returncode == called(theirs).returncode == 0
    a = shells("g", "--name", "A", "--transport", transport, "--secret-file", str(ours))
    a.view_of("A")
    monkeypatch.setenv("PYGROUPS_SECRET_FILE", str(ours))
    b = shells("g", "--name", "B", "--transport", transport)
    monkeypatch.delenv("PYGROUPS_SECRET_FILE")
    for shell in (a, b):
        shell.view_of("A", "B")
    a.type(b"sealed\n")
    assert b.event("message")["text"] == "sealed"
    for options, sentence in ((("--secret-file", str(theirs)), "another secret"), ((), "this process has none")):
        code, events, errors = shells("g", "--name", "C", "--transport", transport, *options).end()
        assert (code, events) == (2, [])
        assert sentence in errors.splitlines()[-1] and "--secret-file" in errors.splitlines()[-1]


@pytest.mark.slow
def test_a_liar_at_one_of_two_places_does_not_end_the_join_and_a_group_with_another_secret_does(
    tmp_path: Path,
    shells: Any,  # noqa: F811
) -> None:
    """A group with another secret at one listed place looks like a liar: it decides if no other place is listed."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert called(ours).returncode == called(theirs).returncode == 0
    mine, other, empty = (f"127.0.0.1:{port}" for port in free_ports(3))
    a = shells("g", "--name", "A", "--bind", other, "--discovery", other, "--secret-file", str(theirs))
    a.view_of("A")
    common = ("g", "--name", "B", "--bind", mine, "--secret-file", str(ours), "--discovery")
    b = shells(*common, f"{mine},{other},{empty}", folder="of B")
    b.view_of("B")
    code, _, errors = b.end(send=signal.SIGTERM)
    assert code == 0 and f"{other} answers without the secret of this process" in errors
    code, events, errors = shells(*common, f"{mine},{other}", folder="of B").end()
    assert (code, events) == (2, [])
    assert f"another secret: the process at {other} and this process" in errors.splitlines()[-1]
