"""How long after its record a violation stands in the tables of `pygroups stream`.

A group of three members writes its journals as it runs, at a steady rate.  Every few seconds one of them delivers a
message twice: the time from this record to its row in the table `violations`.

    python bench/stream.py --seconds 120 --rate 500
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from bench.common import quantile
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter
from pygroups.pipeline.timings import cpu_seconds

MEMBERS = ("A", "B", "C")
VIEW = (1, "A@1")


class Group:
    """Three journals in which A sends and all deliver."""

    def __init__(self, root: Path) -> None:
        told = {"host": "h", "boot_id": "b", "services": services_of_v1("fifo")}
        self.journals = {name: JournalWriter(root, "g", name, "1", "fifo", **told) for name in MEMBERS}
        self.sent = self.position = 0
        everybody = [f"{name}@1" for name in MEMBERS]
        for name in MEMBERS:
            view = {"members": everybody, "transitional": [f"{name}@1"], "primary": True}
            self._write(name, ("view", VIEW, view))

    def _write(self, name: str, *records: tuple[str, tuple[int, str], dict[str, object]]) -> None:
        self.journals[name].write(list(records), time.time_ns() // 1000, time.monotonic_ns() // 1000)

    def step(self, count: int) -> None:
        """A run of `count` messages."""
        run = {"origin": "A", "origin_incarnation": "1", "first": self.sent + 1, "count": count, "bytes": 100 * count}
        run["checksum"] = self.sent
        self._write("A", ("send", VIEW, run))
        for name in MEMBERS:
            self._write(name, ("deliver", VIEW, {**run, "stream": "A@1", "seq": self.sent, "position": self.position}))
        self.last, self.sent, self.position = run, self.sent + count, self.position + count

    def repeat(self) -> int:
        """C delivers the last run again; gives the number of its first message."""
        again = {**self.last, "stream": "A@1", "seq": self.sent, "position": self.position}
        self._write("C", ("deliver", VIEW, again))
        return int(str(self.last["first"]))


def found(out: Path) -> set[int]:
    """The messages whose repetition stands in the table."""
    rows = (row for file in out.glob("violations/*/*.parquet") for row in _rows(file))
    return {row["first"] for row in rows if row["promise"] == "no-duplication"}


def _rows(file: Path) -> list[dict[str, int]]:
    try:
        return list(pq.read_table(file, columns=["promise", "first"]).to_pylist())
    except OSError:  # written or replaced just now
        return []


def batch_of(out: Path) -> int:
    """The number of the last batch; -1 before the first one has ended."""
    return max((int(folder.name.partition("=")[2]) for folder in out.glob("verdicts/batch=*")), default=-1)


def measured(seconds: float, rate: int, every: float) -> tuple[list[float], float]:
    """The seconds from each repetition to its row, and the CPU seconds of a batch."""
    delays: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        journal, out = Path(folder) / "journal", Path(folder) / "out"
        group = Group(journal)
        command = [sys.executable, "-m", "pygroups", "stream", str(journal), "--out", str(out)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as stream:
            planted: dict[int, float] = {}
            begun = due = used = 0.0
            while not begun or time.monotonic() < begun + seconds or planted.keys() - delays.keys():
                group.step(max(1, rate // 20))
                time.sleep(0.05)
                now = time.monotonic()
                seen = found(out)
                for number in seen & planted.keys() - delays.keys():
                    delays[number] = now - planted[number]
                if not begun and batch_of(out) >= 0:  # Spark has started
                    begun, due, used = now, now, cpu_seconds()
                if begun and due <= now < begun + seconds:
                    planted[group.repeat()] = time.monotonic()
                    due = now + every
            cost = (cpu_seconds() - used) / max(1, batch_of(out))
            stream.terminate()
    return sorted(delays.values()), cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=int, default=500, help="messages a second")
    parser.add_argument("--every", type=float, default=3.7, help="seconds between two violations")
    given = parser.parse_args()
    delays, cost = measured(given.seconds, given.rate, given.every)
    half, most = quantile(delays, 0.5), delays[-1]
    print(
        f"{len(delays)} violations at {given.rate} messages a second: in the table after {half:.1f} s at the median, "
        f"{most:.1f} s at worst; a batch takes {cost:.1f} CPU s"
    )


if __name__ == "__main__":
    main()
