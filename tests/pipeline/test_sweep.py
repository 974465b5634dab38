"""The sweep: one row for each seed, the same as the simulator's own; nothing is played twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pygroups.core.errors import UsageError
from pygroups.pipeline import sweep as sweeping
from pygroups.pipeline.sweep import _ROWS, sweep
from pygroups.sim.batches.runner import Totals, play_seed
from pygroups.sim.schedules.draw import Wish
from tests.patience import patience

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
WISH = Wish("fifo", members=2, minutes=0.08)


def rows_of(out: Path) -> list[dict[str, object]]:
    rows = [row for file in sorted((out / "seeds").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=lambda row: row["seed"])


def test_a_sweep_goes_on_behind_the_seeds_that_have_a_row(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    assert sweep(spark, range(3), WISH, out).played == 3
    told: list[tuple[int, int]] = []
    result = sweep(spark, range(1, 6), WISH, out, lambda done, of: told.append((done, of)))
    assert result.played == 3 and told[-1] == (5, 5)
    rows = rows_of(out)
    assert [row["seed"] for row in rows] == list(range(6))
    alone, sums = [play_seed(seed, WISH) for seed in range(6)], Totals()
    for row, outcome in zip(rows, alone, strict=True):
        assert row["verdict"] == ("empty" if outcome.empty else "held")
        assert dict(row["counts"]) == outcome.counts and dict(row["facts"]) == outcome.facts  # type: ignore[call-overload]
    for outcome in alone[1:]:
        sums.add(outcome)
    assert result.totals.counts == sums.counts and result.totals.schedules == sums.schedules == 5
    assert result.totals.virtual_s == pytest.approx(sums.virtual_s)


def test_broken_seeds_are_listed_and_a_row_that_came_twice_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    """A sweep that ends while it moves the files of a wave leaves rows that nobody plays again, or plays twice."""
    out = tmp_path / "sweep"
    sweep(spark, range(2), WISH, out)
    found = {"promise": "fifo", "detail": "fifo: 2 before 1", "command": "pygroups simulate --replay 2"}
    row = {"seed": 2, "verdict": "broken", "simulated_s": 1.0, "cpu_s": 0.1, **found}
    row |= {name: [("views", 1)] for name in ("counts", "faults", "drops", "facts")}
    for name in ("a", "b"):
        pq.write_table(pa.Table.from_pylist([row], schema=_ROWS), out / "seeds" / f"part-{name}.parquet")
    result = sweep(spark, range(3), WISH, out)
    assert (result.played, result.broken, result.totals.schedules) == (0, 1, 3)
    assert result.failures == [sweeping.Failure(seed=2, **found)]


def test_another_kind_of_schedules_goes_into_another_folder(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    sweep(spark, range(1), WISH, out)
    with pytest.raises(UsageError, match=r"another sweep \(members differs\)"):
        sweep(spark, range(1), WISH._replace(members=3), out)
    note = json.loads((out / "sweep.json").read_text())
    (out / "sweep.json").write_text(json.dumps(note | {"version": "0"}))
    with pytest.raises(UsageError, match=r"version differs"):
        sweep(spark, range(1), WISH, out)
    with pytest.raises(UsageError, match="has other files"):
        sweep(spark, range(1), WISH, out / "seeds")


def test_ctrl_c_ends_it_without_a_word_and_what_is_played_stays(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    command = [sys.executable, "-m", "pygroups", "sweep", "--seeds", "0:100000", "--profile", "fifo", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(out.glob("seeds/_temporary/*/task_*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, err = process.communicate(timeout=patience(120))
    assert (process.returncode, said, err) == (130, "", "")
    assert json.loads((out / "sweep.json").read_text())["profile"] == "fifo"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give the seeds"),
        (["--seeds", "0:5"], "give the folder"),
        (["--seeds", "5:0", "--out", "x"], "contains no seed"),
        (["--seeds", "0:5", "--profile", "x", "--out", "x"], "no profile"),
        (["--seeds", "0:5", "--out", __file__], "is a file"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    from pygroups.cli.main import main

    assert main(["sweep", *options]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.out == ""
