"""The bookkeeping of `make simulate`: it goes on where it stopped, and counts what belongs to the code as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import sample
from bench import simulate as long
from pygroups.layers.profiles import PROFILES

HOME = Path(__file__).parents[2]
NOTHING = long.Counted(0, 0, 0.0, 0.0, 0, [])
TOTAL = PROFILES["total"]


def line(profile: str = "total", digest: str = "d", seeds: tuple[int, int] = (0, 100), **more: Any) -> dict[str, Any]:
    sums = {"schedules": seeds[1] - seeds[0], "empty": 1, "simulated_s": 36.0, "seconds": 10.0}
    return {"profile": profile, "digest": digest, "seeds": list(seeds), "found": None, **sums, **more}


class Simulator:
    """Stands for `pygroups simulate --json`; the seed that breaks a promise, if any, is `breaks`."""

    def __init__(self, breaks: int | None = None) -> None:
        self.breaks = breaks
        self.calls: list[tuple[str, range]] = []

    def __call__(self, *options: str) -> dict[str, Any]:
        profile, (low, high) = options[1], map(int, options[3].split(":"))
        self.calls.append((profile, range(low, high)))
        broken = self.breaks is not None and low <= self.breaks < high
        done = (self.breaks + 1 if broken and self.breaks is not None else high) - low
        witness = {"detail": "late"}
        return {
            "profile": profile,
            "schedules": done,
            "empty": 0,
            "simulated_s": 15.0 * done,
            "seconds": 0.1 * done,
            "messages": 9,
            "faults": {"crash": 3},
            "stages": {},
            "drops": {},
            "shortcomings": [],
            "failure": {"seed": self.breaks, "promise": "fifo", "witness": witness} if broken else None,
        }


class Clock:
    """Every look at it takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Simulator:
    simulator = Simulator()
    monkeypatch.setattr(long, "simulate", simulator)
    monkeypatch.setattr(long.time, "monotonic", Clock(20.0))
    return simulator


def test_a_count_goes_on_behind_the_highest_seed(tmp_path: Path, simulator: Simulator) -> None:
    file = tmp_path / "simulate.jsonl"
    assert long.go_on(file, ["total", "fifo"], 1, None) == 0
    assert long.go_on(file, ["total", "fifo"], 1, None) == 0
    for profile in ("total", "fifo"):
        seeds = [call for name, call in simulator.calls if name == profile]
        assert len(seeds) >= 2 and seeds[0].start == 0
        assert [one.stop for one in seeds[:-1]] == [one.start for one in seeds[1:]], "no seed twice, none left out"
        so_far = long.counted(long.read(file), profile, long.digest_of(PROFILES[profile]))
        assert so_far.schedules == so_far.next_seed == seeds[-1].stop
    assert len(long.read(file)) == len(simulator.calls)


def test_the_profile_that_has_the_fewest_is_next(tmp_path: Path, simulator: Simulator) -> None:
    file = tmp_path / "simulate.jsonl"
    long.append(file, line("fifo", long.digest_of(PROFILES["fifo"]), (0, 5_000)))
    long.go_on(file, ["total", "fifo"], 1, None)
    assert {profile for profile, _ in simulator.calls} == {"total"}


def test_a_second_judge_ends_the_count_too(tmp_path: Path, simulator: Simulator) -> None:
    heard: list[tuple[str, Sequence[int]]] = []

    def second(profile: str, seeds: Sequence[int]) -> bool:
        heard.append((profile, seeds))
        return len(heard) < 2

    assert long.go_on(tmp_path / "lines", ["total"], 1.0, None, second) == 1
    assert heard == simulator.calls and len(heard) == 2


def test_the_audit_hears_a_sample_of_each_profile_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, range]] = []
    answer: dict[str, Any] = {"rows": 7, "promises": [{"judged": 3, "violations": []}]}

    def audited(profile: str, seeds: range) -> dict[str, Any]:
        asked.append((profile, seeds))
        return answer

    monkeypatch.setattr(sample, "audited", audited)
    file = tmp_path / "audited.jsonl"
    assert sample.audit_daily(file, "total", range(100, 700))
    assert sample.audit_daily(file, "total", range(700, 900))
    assert sample.audit_daily(file, "fifo", range(7, 10))
    assert asked == [("total", range(100, 150)), ("fifo", range(7, 10))]
    monkeypatch.setattr(sample, "today", lambda: "2999-01-01")
    violation = {"promise": "fifo", "group": "seed-8", "member": "A@1", "detail": "late"}
    answer["promises"][0]["violations"] = [violation]
    assert not sample.audit_daily(file, "fifo", range(7, 10))
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    assert [line["broken"] for line in lines] == [[], [], [["fifo", "seed-8"]]]


def test_where_no_spark_runs_the_count_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "audited", lambda profile, seeds: None)
    assert sample.audit_daily(tmp_path / "lines", "total", range(9))
    assert not (tmp_path / "lines").exists()


def test_lines_of_other_code_do_not_count() -> None:
    lines = [line(seeds=(0, 500)), line(digest="old", seeds=(0, 90_000)), line("fifo"), line(seeds=(500, 900))]
    so_far = long.counted(lines, "total", "d")
    assert so_far == long.Counted(900, 2, 72.0, 20.0, 900, [])
    assert long.counted(lines, "total", "new") == NOTHING


def test_a_torn_last_line_costs_that_piece_only(tmp_path: Path) -> None:
    file = tmp_path / "simulate.jsonl"
    long.append(file, line(seeds=(0, 100)))
    long.append(file, line(seeds=(100, 200)))
    file.write_bytes(file.read_bytes()[:-40])
    assert long.counted(long.read(file), "total", "d").next_seed == 100
    long.append(file, line(seeds=(100, 300)))
    assert long.counted(long.read(file), "total", "d").next_seed == 300
    assert [json.loads(text)["seeds"] for text in file.read_text().splitlines() if text.endswith("}")] == [
        [0, 100],
        [100, 300],
    ]


def test_a_find_ends_the_count_with_a_small_schedule_that_is_no_test_yet(
    tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, made = tmp_path / "simulate.jsonl", tmp_path / "total-42.json"
    made.touch()
    monkeypatch.setattr(long, "shrunk", lambda profile, seed: tmp_path / f"{profile}-{seed}.json")
    simulator.breaks = 42
    assert long.go_on(file, ["total"], 1, None) == 1
    said = capsys.readouterr().out
    assert "FOUND in seed 42 of total: fifo: late" in said and str(made) in said
    (written,) = long.read(file)
    assert (written["seeds"], written["found"], written["schedules"]) == ([0, 43], "fifo", 43)
    simulator.breaks = None
    assert long.go_on(file, ["total"], 1, None) == 0
    assert simulator.calls[1][1].start == 43
    assert "FOUND: fifo (seed 42)" in capsys.readouterr().out
    assert long.CANDIDATES.parent == Path(__file__).with_name("found")


def test_a_piece_during_which_the_source_changed_does_not_count(
    tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = iter(["before", "after", *["after"] * 99])
    monkeypatch.setattr(long, "digest_of", lambda _: next(digests))
    file = tmp_path / "simulate.jsonl"
    long.go_on(file, ["total"], 1, None)
    assert "the seeds 0:100 do not count" in capsys.readouterr().out
    assert {one["digest"] for one in long.read(file)} == {"after"}
    assert simulator.calls[0] == simulator.calls[1] == ("total", range(100))


def test_too_many_empty_schedules_fail(tmp_path: Path, simulator: Simulator) -> None:
    file = tmp_path / "simulate.jsonl"
    long.append(file, line(digest=long.digest_of(TOTAL), seeds=(0, 9_000), empty=800))
    assert long.go_on(file, ["total"], 1, None) == 1


def test_a_piece_is_as_long_as_its_time() -> None:
    assert long.piece_size(NOTHING, 1_000.0) == long.FIRST
    fast, slow = NOTHING._replace(schedules=1_000, seconds=10.0), NOTHING._replace(schedules=1_000, seconds=200.0)
    assert long.piece_size(fast, 1_000.0) == long.PIECE
    assert long.piece_size(slow, 1_000.0) == 450
    assert long.piece_size(slow, 10.0) == 50
    assert long.piece_size(slow, 0.001) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("layers/sequencer.py", "class Sequencer(", "class Sequencer(  # as ever\n    ", False),
        ("layers/sequencer.py", '"""SEQUENCER', '"""The SEQUENCER', False),
        (
            "layers/gms/decisions/decide.py",
            "max(view.id.number, highest) + 1",
            "max(view.id.number, highest) + 2",
            True,
        ),
        ("layers/stable/votes.py", "from __future__", "LIMIT = 3\nfrom __future__", True),
        ("core/run.py", "from __future__", "LIMIT = 3\nfrom __future__", True),
        ("wire/codec.py", "from __future__", "LIMIT = 3\nfrom __future__", True),
        ("sim/world/network.py", "from __future__", "LIMIT = 3\nfrom __future__", True),
        ("sim/schedules/lasting.py", "FOR_GOOD: Final = 0.3", "FOR_GOOD: Final = 0.4", True),
        ("sim/promises/progress.py", "+ 4 * patience", "+ 5 * patience", True),
        ("sim/promises/views.py", '"""Promises about views', '"""Promises about all views', False),
        ("sim/world/spacetime.py", "from __future__", "LIMIT = 3\nfrom __future__", False),
    ],
)
def test_the_digest_is_of_what_the_code_does(tmp_path: Path, file: str, old: str, new: str, changes: bool) -> None:
    for room in ("core", "wire", "layers", "sim"):
        shutil.copytree(HOME / "src" / "pygroups" / room, tmp_path / "src" / "pygroups" / room)
    before = long.digest_of(TOTAL, tmp_path)
    assert before == long.digest_of(TOTAL) != long.digest_of(PROFILES["fifo"])
    changed = tmp_path / "src" / "pygroups" / file
    text = changed.read_text()
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new))
    assert (long.digest_of(TOTAL, tmp_path) != before) is changes


def test_two_do_not_count_into_one_file(tmp_path: Path) -> None:
    with (tmp_path / "x").open("a") as one, (tmp_path / "x").open("a") as other:
        assert long.alone(one)
        assert not long.alone(other)


def test_a_new_count_may_begin_with_another_seed() -> None:
    """Seeds whose finds were mended say less of the mended source than seeds that nobody has played."""
    lines = [line(seeds=(500, 600))]
    assert long.counted([], "total", "d", first=500).next_seed == 500
    assert long.counted(lines, "total", "d", first=500).next_seed == 600
