"""`pygroups demo`: feeds, tables, the folder of its results, and the whole course of it with a kill."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pygroups.cli.demo import director
from pygroups.cli.demo.director import direct
from pygroups.cli.demo.feeds import Feed, bundled_feeds, input_feeds, payload_of, record_in
from pygroups.cli.demo.folder import DemoFolder
from pygroups.cli.demo.narrator import Narrator
from pygroups.cli.demo.replica import Replica, digest_of, rows_of, what_is_wrong
from pygroups.cli.demo.result import DemoResult, Kill
from pygroups.cli.demo.settings import DemoSettings
from pygroups.core.errors import UsageError
from pygroups.journal.frames import Frame, walk
from tests.patience import patience

# -- feeds


def test_the_bundled_feeds_have_22355_records_and_no_header() -> None:
    feeds = bundled_feeds()
    assert {feed.name: len(feed.records()) for feed in feeds} == {
        "seattle-temps": 8_759,
        "sf-temps": 8_759,
        "airports": 3_376,
        "seattle-weather": 1_461,
    }
    assert feeds[2].records()[0].startswith("00M,")


def test_every_line_of_an_own_file_is_a_record(tmp_path: Path) -> None:
    (tmp_path / "a.b.csv").write_bytes("eins\r\nzwei\n\nvier, ohne Ende: ü".encode())
    (tmp_path / "plain").write_bytes(b"one\n")
    feeds = input_feeds([tmp_path / "a.b.csv", tmp_path / "plain"])
    assert [(feed.name, feed.records()) for feed in feeds] == [
        ("a.b", ["eins", "zwei", "", "vier, ohne Ende: ü"]),
        ("plain", ["one"]),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no lines"),
        (b"\xff\n", "not text in UTF-8"),
        (b"x" * 70_000, "line 1 of .* over"),
        (None, "cannot be read"),
    ],
)
def test_what_cannot_be_sent_is_refused(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "feed.csv").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        input_feeds([tmp_path / "feed.csv"])


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "feed.csv").write_text("1\n")
    with pytest.raises(UsageError, match="rename one"):
        input_feeds([tmp_path / "x" / "feed.csv", tmp_path / "y" / "feed.csv"])


def test_a_record_travels() -> None:
    assert record_in(payload_of("feed", 7, "tëxt")) == ("feed", 7, "tëxt")


# -- tables


def feed_of(folder: Path, name: str, lines: list[str]) -> Feed:
    (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return input_feeds([folder / f"{name}.txt"])[0]


def test_positions_count_from_0_over_the_state_and_all_that_follows(tmp_path: Path) -> None:
    async def story() -> None:
        first = Replica(tmp_path / "A.sqlite")
        first.apply([("f", 1, "one"), ("g", 1, "eins")])
        first.apply([("f", number, str(number)) for number in range(2, 1_500)])
        state = await first.get_state()
        first.apply([("g", 2, "zwei")])  # while the state is read
        data = b"".join([piece async for piece in state])
        second = Replica(tmp_path / "B.sqlite")
        await second.set_state(data)
        assert (second.count, second.next_line("f"), second.next_line("h")) == (1_500, 1_500, 1)
        second.apply([("g", 2, "zwei")])
        first.close()
        second.close()

    asyncio.run(story())
    rows = list(rows_of(tmp_path / "B.sqlite"))
    assert [row[0] for row in rows] == list(range(1_501))
    assert digest_of(tmp_path / "A.sqlite") == digest_of(tmp_path / "B.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.sqlite", "B.sqlite"]


def test_a_table_begins_empty_whatever_an_earlier_life_left(tmp_path: Path) -> None:
    code = "import os, sys, pathlib; from pygroups.cli.demo.replica import Replica; "
    code += "Replica(pathlib.Path(sys.argv[1])).apply([('f', 1, 'one')]); os._exit(9)"
    path = tmp_path / "A.sqlite"
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 9
    assert path.with_name("A.sqlite-wal").stat().st_size > 0
    new = Replica(path)
    assert (new.count, list(rows_of(tmp_path / "A.sqlite"))) == (0, [])
    new.close()


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([("f", 1, "a"), ("g", 1, "x"), ("f", 2, "b")], ""),
        ([("f", 1, "a"), ("f", 2, "b")], "records are missing: 1 of g"),
        ([("f", 1, "a"), ("g", 1, "x")], "records are missing: 1 of f"),
        (
            [("f", 1, "a"), ("f", 1, "a"), ("f", 2, "b"), ("g", 1, "x")],
            "line 1 of f is at position 1, after line 1",
        ),
        ([("f", 2, "b"), ("f", 1, "a"), ("g", 1, "x")], "line 2 of f is at position 0, after line 0"),
        ([("f", 1, "a"), ("f", 2, "B"), ("g", 1, "x")], "line 2 of f has another text"),
        ([("f", 1, "a"), ("f", 2, "b"), ("f", 3, "c"), ("g", 1, "x")], "line 3 of f has another text"),
        ([("h", 1, "a")], "line 1 of h is at position 0, after line None"),
    ],
)
def test_what_is_wrong_with_a_table_is_found(tmp_path: Path, rows: list[tuple[str, int, str]], wrong: str) -> None:
    feeds = [feed_of(tmp_path, "f", ["a", "b"]), feed_of(tmp_path, "g", ["x"])]
    replica = Replica(tmp_path / "A.sqlite")
    replica.apply(rows)
    replica.close()
    assert what_is_wrong(tmp_path / "A.sqlite", feeds) == wrong


def test_a_hole_in_the_positions_is_found(tmp_path: Path) -> None:
    feeds = [feed_of(tmp_path, "f", ["a", "b"])]
    replica = Replica(tmp_path / "A.sqlite")
    replica.apply([("f", 1, "a"), ("f", 2, "b")])
    replica.close()
    with sqlite3.connect(tmp_path / "A.sqlite") as base:
        base.execute("UPDATE records SET position = 5 WHERE position = 1")
    base.close()
    assert what_is_wrong(tmp_path / "A.sqlite", feeds) == "position 1 is missing"


# -- the folder


def test_a_later_demo_replaces_its_own_files_and_no_others(tmp_path: Path) -> None:
    place = DemoFolder(tmp_path / "out")
    place.prepare(["A", "B"])
    life = place.journal / "demo" / "A@0123456789abcdef"
    life.mkdir(parents=True)
    for file in (place.replica("A"), place.result, place.report, life / "000000.journal", life / "lock"):
        file.write_text("ours")
    (place.folder / "notes.txt").write_text("not ours")
    (life / "thoughts.txt").write_text("not ours")
    DemoFolder(tmp_path / "out").prepare(["A", "B", "C"])
    left = sorted(str(path.relative_to(place.folder)) for path in place.folder.rglob("*") if path.is_file())
    assert left == [".pygroups-demo", "journal/demo/A@0123456789abcdef/thoughts.txt", "notes.txt"]
    (life / "thoughts.txt").unlink()
    DemoFolder(tmp_path / "out").prepare(["A"])
    assert not place.journal.exists()


def test_what_is_not_of_a_demo_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "A.sqlite").write_text("mine")
    with pytest.raises(UsageError, match="does not come from an earlier demo"):
        DemoFolder(tmp_path).prepare(["A"])
    assert (tmp_path / "A.sqlite").read_text() == "mine"
    life = tmp_path / "out" / "journal" / "demo" / "A@0123456789abcdef"
    life.mkdir(parents=True)
    (life / "000000.journal").write_text("mine")
    with pytest.raises(UsageError, match="does not come from an earlier demo"):
        DemoFolder(tmp_path / "out").prepare(["A"])
    assert (life / "000000.journal").exists()


def test_a_list_that_points_elsewhere_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out" / ".pygroups-demo").write_text("../precious\n")
    DemoFolder(tmp_path / "out").prepare(["A"])
    assert (tmp_path / "precious").exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another --out"):
        DemoFolder(tmp_path / "file" / "out").prepare(["A"])


# -- the verdict


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({}, True),
        ({"kill": None}, True),
        ({"digests": {"A": "x", "B": "y"}}, False),
        ({"wrong": {"A": "", "B": "records are missing"}}, False),
        ({"verdicts": {"fifo": {"verdict": "broken"}}}, False),
        ({"verdicts": {"fifo": {"verdict": "not judged"}}}, True),
        ({"kill": Kill("A@1", 3, 7, False, 1.0, 1.0)}, False),
    ],
)
def test_all_is_well_only_if_everything_is(change: dict[str, Any], ok: bool) -> None:
    well: dict[str, Any] = {
        "seconds": 1.0,
        "records": 9,
        "held": {"A": 9, "B": 9},
        "digests": {"A": "x", "B": "x"},
        "wrong": {"A": "", "B": ""},
        "kill": Kill("A@1", 3, 7, True, 1.0, 1.0),
        "verdicts": {"fifo": {"verdict": "held"}},
    }
    assert DemoResult(**{**well, **change}).ok is ok


def test_the_verdicts_are_told_and_which_promises_no_rule_judges(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = DemoResult(
        1.0, 9, {}, {}, {}, None, {"fifo": {"verdict": "held", "judged": 1234, "skipped": 0}}, ["causal"]
    )
    narrator = Narrator.__new__(Narrator)  # without its bars
    narrator.began, narrator.console = 0.0, Console(highlight=False, soft_wrap=True)
    narrator.audited(outcome, Path("report.html"))
    told = capsys.readouterr().out
    assert "fifo                   held       1,234 facts judged" in told
    assert "not judged, because these promises have no rule yet: causal" in told


# -- the course of events


def kinds_in(journal: Path) -> dict[str, list[str]]:
    """The kinds of record that each life wrote, by address."""
    found: dict[str, list[str]] = {}
    for segment in sorted(journal.rglob("*.journal")):
        kinds = found.setdefault(segment.parent.name, [])
        for part in walk(segment.read_bytes()):
            kinds += [record[0] for record in part.records] if isinstance(part, Frame) else []
    return found


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(director, "FEED_SECONDS", 3.0)
    monkeypatch.setattr(director, "AWAY_SECONDS", 0.3)


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_one_is_killed_and_nothing_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds = [feed_of(tmp_path, name, [f"{name} {n}" for n in range(600)]) for name in ("f", "g", "h")]
    out = tmp_path / "out"
    assert direct(DemoSettings(feeds, out, 4, seed=3, kill=True, audit=False)) == 0
    result = json.loads((out / "demo.json").read_text())
    assert (result["ok"], result["records"], result["seed"]) == (True, 1_800, 3)
    assert result["counts"] == dict.fromkeys("ABCD", 1_800)
    assert len(set(result["digests"].values())) == 1
    kill = result["kill"]
    assert kill["address"].startswith("A@")
    assert kill["runs"] > 0
    assert 0 < kill["sent"] < 600
    assert 0 < kill["state_records"] < 1_800
    assert result["gap_ms"] > 0
    kinds = kinds_in(out / "journal")
    marks = {
        life: [kind for kind in found if kind in ("fault", "heal", "quiet", "stop")] for life, found in kinds.items()
    }
    dead = kill["address"]
    (again,) = (life for life in marks if life.startswith("A@") and life != dead)
    assert marks[dead] == []
    assert marks[again] == ["heal", "quiet", "stop"]
    assert [marks[life] for life in marks if not life.startswith("A@")] == [["fault", "heal", "quiet", "stop"]] * 3
    assert kinds[again].count("state_set") == 1
    for found in kinds.values():
        if "fault" in found:  # the mark stands before the view change that it causes
            assert found.index("fault") < found.index("view", found.index("deliver"))
    told = capsys.readouterr().out
    assert "kill -9 of A, the sequencer" in told
    assert "identical and complete" in told
    assert "success" in told


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_the_only_one_that_sends_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = feed_of(tmp_path, "f", [str(n) for n in range(400)])
    assert direct(DemoSettings([feed], tmp_path / "out", 2, seed=1, kill=True, audit=False)) == 0
    result = json.loads((tmp_path / "out" / "demo.json").read_text())
    assert (result["counts"], result["gap_ms"]) == ({"A": 400, "B": 400}, None)
    assert "no other member sends" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_fewer_members_than_feeds_and_nobody_killed(tmp_path: Path) -> None:
    feeds = [feed_of(tmp_path, name, [f"{name} {n}" for n in range(50)]) for name in ("f", "g", "h")]
    out = tmp_path / "out"
    assert direct(DemoSettings(feeds, out, 2, seed=1, kill=False, audit=False)) == 0
    result = json.loads((out / "demo.json").read_text())
    assert (result["records"], result["kill"], result["gap_ms"]) == (150, None, None)
    assert sorted(path.name for path in out.glob("*.sqlite")) == ["A.sqlite", "B.sqlite"]


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_a_table_that_lacks_a_record_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(path: Path, feeds: Any) -> str:
        with sqlite3.connect(path) as base:
            base.execute("DELETE FROM records WHERE position = 7")
        base.close()
        return what_is_wrong(path, feeds)

    monkeypatch.setattr(director, "what_is_wrong", forgetful)
    feeds = [feed_of(tmp_path, "f", [str(n) for n in range(30)])]
    assert direct(DemoSettings(feeds, tmp_path / "out", 2, seed=1, kill=False, audit=False)) == 1
    assert json.loads((tmp_path / "out" / "demo.json").read_text())["complete"] is False


@pytest.mark.slow
def test_interrupted_it_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pygroups", "demo", "--no-audit", "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "all members are in one view" in line:
                break
        workers = children_of(process.pid)
        assert len(workers) == 4
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=patience(120))
    assert process.returncode == 130
    assert err == ""
    deadline = time.monotonic() + patience(5)
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def children_of(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--members", "1"), "--members 2 or more"),
        (("--members", "0"), "must be from 1 to 26"),
        (("--members", "27"), "must be from 1 to 26"),
        (("--input", "missing.csv"), "cannot be read"),
    ],
)
def test_wrong_calls_are_one_line(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    command = [sys.executable, "-m", "pygroups", "demo", "--no-audit", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=patience(120))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert sentence in line
    assert list(tmp_path.iterdir()) == []
