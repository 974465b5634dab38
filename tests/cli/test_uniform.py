"""What the command line says of the profiles in which a majority decides each view."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pygroups.cli.demo import director
from pygroups.cli.demo.director import direct
from pygroups.cli.demo.feeds import Feed, input_feeds
from pygroups.cli.demo.settings import DemoSettings
from pygroups.cli.flags import as_flags
from pygroups.cli.main import main
from pygroups.layers.profiles import PROFILES
from tests.patience import patience


def words_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("command", ["join", "simulate"])
def test_the_help_names_each_profile(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = words_of(capsys, command, "--help")
    assert [name for name in PROFILES if name not in told] == []


def test_the_help_of_join_teaches_expect_and_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    told = words_of(capsys, "join", "--help")
    for sentence in ("--expect", "that may take part in the first view", "answer for its former life"):
        assert sentence in told


def test_errors_and_advice_name_flags() -> None:
    said = "a profile over the network needs expect=, the number; without name= and journal= so that"
    assert as_flags(said) == "a profile over the network needs --expect, the number; without --name and " + (
        "--journal so that"
    )


def test_a_group_over_the_network_needs_expect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["join", "g", "--profile", "uniform", "--discovery", "127.0.0.1:7000"]) == 2
    assert "--profile 'uniform' over the network needs --expect, the number of all" in capsys.readouterr().err


@pytest.mark.slow
def test_a_member_in_the_shell_is_advised_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pygroups", "join", "g", "--profile", "uniform", "--leave-at-eof"]
    command += ["--discovery", f"dir:{tmp_path / 'groups'}"]
    told = subprocess.run(command, input="x\n", capture_output=True, text=True, check=True, timeout=patience(120))
    assert told.stderr.count("without --journal so that after a crash no process can answer for it") == 1
    whole = [*command, "--name", "A", "--journal", str(tmp_path / "journal"), "--expect", "1"]
    told = subprocess.run(whole, input="x\n", capture_output=True, text=True, check=True, timeout=patience(120))
    assert told.stderr == ""
    assert [json.loads(line)["event"] for line in told.stdout.splitlines()] == ["view", "message", "left"]


# -- the demo


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--profile", "fifo"],
            "--profile fifo: the demo compares tables, which need one order: give total or uniform",
        ),
        (["--profile", "unicast"], "--profile unicast: the demo compares tables"),
        (["--profile", "nonsense"], "there is no profile 'nonsense'"),
        (["--profile", "uniform", "--members", "2"], "the second cannot go on without the first"),
    ],
)
def test_the_demo_refuses_what_it_cannot_show(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *options, "--no-audit"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


@pytest.mark.slow
def test_the_demo_of_uniform_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(director, "FEED_SECONDS", 3.0)
    monkeypatch.setattr(director, "AWAY_SECONDS", 0.3)
    settings = DemoSettings(feeds(tmp_path), tmp_path / "out", 3, seed=3, kill=True, audit=False, profile="uniform")
    assert direct(settings) == 0
    result = json.loads((tmp_path / "out" / "demo.json").read_text())
    assert (result["ok"], result["profile"], result["records"]) == (True, "uniform", 900)
    told = " ".join(capsys.readouterr().out.split())
    assert f"profile uniform: {PROFILES['uniform'].promise}" in told
    assert "kill -9 of A, the sequencer" in told


def feeds(folder: Path) -> list[Feed]:
    for name in "fgh":
        (folder / f"{name}.txt").write_text("".join(f"{name} {n}\n" for n in range(300)))
    return input_feeds([folder / f"{name}.txt" for name in "fgh"])
