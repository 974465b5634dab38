"""`pygroups simulate` as a user calls it: verdicts, exit codes, repeats, journals, refusals; a seed is a seed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pygroups.cli.main import main
from pygroups.sim.batches import runner
from pygroups.sim.batches.runner import play
from pygroups.sim.batches.shrink import LIMIT_S
from pygroups.sim.batches.simpler import size_of
from pygroups.sim.batches.summary import command, parse_seeds
from pygroups.sim.schedules.catalog import FAULTS
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import from_json, to_json
from tests.patience import patience

PLANTED = Path(__file__).parents[1] / "mutants"


def simulate(
    *options: str, hash_seed: str = "random", source: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    words = [sys.executable, "-m", "pygroups", "simulate", *options]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(folder.rglob("*.journal"))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_few_seeds_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "0:4", "--profile", "total", "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for word in ("4 schedules (0 empty)", "messages", "deliveries", "views", "crashes", "flush restarts", "dropped:"):
        assert word in said.out
    for word in ("simulated hours", "faults: ", "view changes: ", "bound ", "stages never reached: "):
        assert word in said.out
    assert max(map(len, said.out.splitlines())) <= 120


def test_a_trace_follows_one_message_through_all_members(capsys: pytest.CaptureFixture[str]) -> None:
    """Down at its sender, up at every member; of all other messages the lines say nothing."""
    assert main(["simulate", "--replay", "2", "--trace", "B#5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    crossings = [line.split() for line in lines if " > " in line]
    runs = [line.split("#")[1] for line in lines if " > " in line]
    assert all(first <= 5 < first + count for first, count in (map(int, run.split()[0].split("+")) for run in runs))
    assert [line[1] for line in crossings if line[3:6] == ["top", ">", "statetransfer"]] == ["B"]
    given = {line[1] for line in crossings if line[3:6] == ["top", ">", "application"]}
    assert "B" in given and len(given) >= 2
    assert any(" view 2:" in line for line in lines) and any("simulated hours" in line for line in lines)


def test_the_numbers_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "0:3", "--profile", "fifo", "--jobs", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schedules"] == 3 and answer["failure"] is None and answer["messages"] > 600
    assert "total-order" not in answer["promises"] and "virtual-synchrony" in answer["promises"]
    assert {"crashes", "isolations_of_a_coordinator", "flush_restarts", "retransmissions", "drops"} <= answer.keys()
    assert answer["shortcomings"] == [] and answer["faults"]["starts"] >= 9 and answer["simulated_hours_per_minute"] > 0
    assert list(answer["facts"]) == answer["promises"] and answer["facts"]["integrity"] > 600
    assert answer["not_judged"] == [promise for promise, count in answer["facts"].items() if not count]
    assert answer["stages"]["bound to a ballot"] > 0 and "bound to a ballot" not in answer["stages_never_hit"]


def test_a_broken_promise_names_seed_witness_and_how_to_repeat_it(tmp_path: Path) -> None:
    from tests.mutants import gate
    from tests.mutants.planting import plant

    source = tmp_path / "src"
    gate.copy_source(source)
    plant("M4-kept", gate.mutants("M4-kept")[0].changes, source)
    found = simulate("--seeds", "0:20", "--json", source=source)
    assert found.returncode == 1, found.stderr
    failure = json.loads(found.stdout)["failure"]
    assert failure["promise"] == failure["witness"]["promise"]
    assert failure["witness"]["member"] and failure["witness"]["message"] and failure["witness"]["view"]
    words = failure["command"].split()
    assert words[:2] == ["pygroups", "simulate"]
    again = simulate(*words[2:], source=source)
    assert again.returncode == 1
    assert f"seed {failure['seed']}: {failure['promise']}" in again.stdout
    assert "view 1:" in again.stdout, "the story of the seed is told"
    assert "\n> " in again.stdout, "the rows with what the witness names are marked"
    assert again.stderr == ""


def test_a_journal_changes_nothing(tmp_path: Path) -> None:
    schedule = draw(3, Wish("total"))
    assert play(schedule).counts == play(schedule, journals=tmp_path).counts


def test_a_schedule_is_data() -> None:
    for seed in range(30):
        schedule = draw(seed, Wish("total"))
        assert from_json(to_json(schedule)) == schedule


def test_schedules_are_what_they_should_be() -> None:
    """Three to five members, one in twenty has more; nine in ten have a crash, an isolation or a pause."""
    grave = large = 0
    for seed in range(400):
        schedule = draw(seed, Wish("total"))
        large += len(schedule.names) > 5
        grave += any(
            type(action).__name__ in ("Crash", "Pause")
            or (type(action).__name__ == "Cut" and len(action.side) == 1 and action.others is None)  # type: ignore[union-attr]
            for action in schedule.actions
        )
        assert schedule.heal_at >= 5_000_000
        assert 3 <= len(schedule.names) <= 12
        senders = {action.who for action in schedule.actions if type(action).__name__ == "Send"}
        assert len(senders) >= 2
    assert grave >= 360
    assert 8 <= large <= 36


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--seeds", "x"], "is not a range"),
        (["--seeds", "5:5"], "contains no seed"),
        (["--profile", "nonsense"], "there is no profile 'nonsense'"),
        (["--faults", "rain"], "there is no fault 'rain'"),
        (["--faults", " , "], "--faults has no name of a fault"),
        (["--shrink", "3"], "the schedule of seed 3 breaks no promise"),
        (
            ["--shrink", "3", "--seeds", "0:9"],
            "--seeds and --shrink each select the schedules to play: give only one of them",
        ),
        (["--replay", "3", "--schedule", "x.json"], "--replay and --schedule each select the schedules to play"),
        (["--trace", "B#1"], "give --replay SEED or --schedule FILE too"),
        (["--replay", "3", "--trace", "B"], "--trace B must name a message, for instance B#17"),
        (["--replay", "3", "--trace", "#5"], "--trace #5 must name a message"),
        (["--replay", "3", "--trace", "Zoe#1"], "the schedule has no member Zoe; its names are A, B, "),
        (["--replay", "3", "--trace", "B#x"], "--trace B#x must name a message"),
        (["--replay", "3", "--trace", "B#1", "--json"], "leave out --json"),
        (["--schedule", "x.json", "--members", "4"], "leave out --profile, --members, --minutes and --faults"),
        (["--shrink", "3", "--journal", "x"], "--shrink writes no journals"),
        (["--schedule", "no-such-file.json"], "cannot be read: No such file"),
        (["--schedule", "pyproject.toml"], "is not a schedule of the simulator"),
        (["--members", "1"], "--members 1 must be from"),
        (["--minutes", "0"], "--minutes 0 must be from"),
        (["--jobs", "0"], "--jobs 0 must be 1 or more"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *options]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_with_the_counts_so_far(jobs: str, tmp_path: Path) -> None:
    """The signal comes when the journals of a first schedule are there."""
    words = ["simulate", "--seeds", "0:100000", "--jobs", jobs, "--journal", str(tmp_path / "journal"), "--json"]
    began = subprocess.Popen(
        [sys.executable, "-m", "pygroups", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )  # a terminal sends the signal to all of its processes
    try:
        while began.poll() is None and not any(tmp_path.glob("journal/seed-*")):
            time.sleep(0.05)
        os.killpg(began.pid, signal.SIGINT)
        out, err = began.communicate(timeout=patience(60))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(began.pid, signal.SIGKILL)
    assert began.returncode == 130
    answer = json.loads(out)
    assert answer["interrupted"] and answer["failure"] is None
    assert err == f"pygroups: interrupted after {answer['schedules']:,} of 100,000 schedules\n"


def test_ctrl_c_that_library_code_swallowed_ends_the_batch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As C code does that asks an object for an attribute and clears every exception."""
    real = runner.play_seeds

    def play_seeds(*words: Any) -> Iterator[Any]:
        for outcome in real(*words):
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            yield outcome

    monkeypatch.setattr(runner, "play_seeds", play_seeds)
    assert main(["simulate", "--seeds", "0:3", "--jobs", "1", "--members", "2", "--minutes", "0.1", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["schedules"] == 1


def test_the_command_that_repeats_a_seed() -> None:
    assert command(7, Wish("fifo", 4, 0.5, FAULTS[:2])) == (
        "pygroups simulate --replay 7 --profile fifo --members 4 --minutes 0.5 --faults crash,restart"
    )
    assert parse_seeds("3:9") == range(3, 9)
    assert parse_seeds("4") == range(4, 5)


@pytest.mark.parametrize(
    "options",
    [
        ("--seeds", "0:2", "--journal", "{file}"),
        ("--replay", "0", "--journal", "{file}/under"),
        ("--replay", "7.9"),
        ("--replay=-1",),
        ("--jobs", "1.5"),
        ("--shrink", "0", "--schedule", "{folder}/nowhere/small.json"),
        ("--shrink", "0", "--schedule", "{folder}"),
        ("--seeds", f"{10**30}:{10**31}"),
        ("--seeds", "0:" + 5_000 * "9"),
        ("--schedule", "{file}"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence_before_any_work(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("no schedule")
    assert main(["simulate", *[option.format(file=file, folder=tmp_path) for option in options]]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("pygroups: ") and said.err.count("\n") == 1, said.err


@pytest.mark.slow
def test_a_failure_is_made_small_and_played_from_its_file(tmp_path: Path) -> None:
    from tests.mutants import gate
    from tests.mutants.planting import plant

    source, file = tmp_path / "src", tmp_path / "small.json"
    gate.copy_source(source)
    plant("N6", gate.mutants("N6")[0].changes, source)
    failure = json.loads(simulate("--seeds", "0:50", "--json", source=source).stdout)["failure"]
    small = simulate("--shrink", str(failure["seed"]), "--schedule", str(file), "--json", source=source)
    assert small.returncode == 1, small.stderr
    answer = json.loads(small.stdout)
    assert answer["failure"]["promise"] == failure["promise"]
    assert answer["failure"]["command"] == f"pygroups simulate --schedule {file}"
    schedule = from_json(file.read_bytes())
    assert answer["shrunk"]["after"] == size_of(schedule)._asdict() and answer["shrunk"]["tries"] > 10
    assert answer["shrunk"]["before"] == size_of(draw(failure["seed"], Wish("total")))._asdict()
    in_time = answer["shrunk"]["seconds"] < LIMIT_S  # a busy machine ends the search early
    assert not in_time or (len(schedule.names) <= 3 and len(schedule.actions) <= 15)
    again = simulate("--schedule", str(file), source=source)
    assert again.returncode == 1 and f": {failure['promise']}: " in again.stdout
    assert simulate("--schedule", str(file)).returncode == 0, "without the bug it holds"
