"""Writes the histories that `histories.py` draws: as the tables that `pygroups ingest` makes, or as journals.

    python -m bench.written --records 10000000 TABLE       narrow tables, a million records in 2 s
    python -m bench.written --records 1000000 --journals DIR

The tables are written by Arrow straight from the drawn columns, one file for each life; a test compares them with what
ingest makes of the journals of the same history.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import bench.common  # noqa: F401  the tree that this file lies in comes first
from bench.histories import (
    BEGIN_US,
    DELIVER,
    SEND,
    STABLE,
    STEP_US,
    Longs,
    Member,
    Shape,
    View,
    happened,
    key_of,
    stories,
)
from pygroups.journal.writer import JournalWriter
from pygroups.layers.profiles import PROFILES
from pygroups.pipeline.ingest import layout

COMMIT: Final = "0000000000000000"
BYTES: Final = 100  # of a message
RECORD_BYTES: Final = 109  # of a record in a journal, about: an audit goes by the size of what it is given


def write_tables(shape: Shape, out: Path) -> int:
    """Tables of the drawn histories in the folder `out`, which must not be there; returns how many run records."""
    out.mkdir(parents=True)
    (out / layout.TABLE_FILE).write_text(json.dumps({"format": layout.FORMAT}))
    runs, manifest, names = 0, [], []
    for views in stories(shape):
        names += _names(views)
        for member in _lives(views):
            life = _Life(out, member, len(manifest))
            for view in views:
                if member in view.members:
                    life.enter(view)
            manifest.append(life.close(views[-1]))
            runs += life.runs
    rows = pa.Table.from_pylist(names, layout.NAMES)
    for number in range(len(manifest)):  # a file of names beside each file of rows; the first one has them all
        _write(rows if number == 0 else rows.slice(0, 0), out / "names" / f"{COMMIT}-{number}.parquet")
    _write(pa.Table.from_pylist(manifest, layout.MANIFEST), out / "manifest" / f"{COMMIT}.parquet")
    return runs


def write_journals(shape: Shape, root: Path, per_frame: float = 4) -> int:
    """Journals of the drawn histories below `root`, with so many records a frame; returns how many run records."""
    runs = 0
    for views in stories(shape):
        for member in _lives(views):
            writer = JournalWriter(
                *(root, member.group, member.name, member.incarnation, "total"),
                host="here",
                boot_id="boot",
                services=PROFILES["total"].services,
            )
            batch: list[Any] = []
            frames = 0
            for number, (record, at) in enumerate(_records(views, member), 1):
                batch.append(record)
                runs += record[0] in ("send", "deliver")
                if number >= (frames + 1) * per_frame:
                    writer.write(batch, at, at)
                    batch = []
                    frames += 1
            writer.write(batch, at, at)
            writer.close()
    return runs


class _Life:
    """One life's rows, view by view."""

    def __init__(self, out: Path, member: Member, number: int) -> None:
        self.out, self.member, self.number = out, member, number
        self.index = self.runs = 0
        self.now = BEGIN_US
        self.events: list[dict[str, Any]] = []
        self.kinds: set[str] = set()
        self.times: list[int] = []
        self.writers: dict[str, pq.ParquetWriter] = {}
        self.keys = np.array([Member(member.group, rank).key for rank in range(1_000)], np.int64)

    def enter(self, view: View) -> None:
        """All that the life writes in a view."""
        if not self.index:
            self._event("start", None, view.begin_us, gauges=[("bound_us", 10_000_000)])
        for kind, fields in happened(view, self.member):
            self._event(kind, view, view.begin_us, **fields)
        kinds, rows = view.of(self.member)
        index = self.index + np.arange(len(kinds), dtype=np.int64)
        times = view.begin_us + (2 * rows + (kinds != SEND)) * STEP_US + self.member.rank
        self.index += len(kinds)
        ordinary = kinds <= DELIVER
        self._write("runs", self._runs(view, kinds[ordinary], rows[ordinary], index[ordinary], times[ordinary]))
        self.runs += int(ordinary.sum())
        self._votes(view, kinds[~ordinary], rows[~ordinary], index[~ordinary], times[~ordinary])
        self.now = view.end_us - STEP_US
        if view.dies is not None and view.dies is not self.member:
            self._event("fault", view, self.now, reason="crash", members=[view.dies.address])

    def close(self, last: View) -> dict[str, Any]:
        """The life's end, and its row of the manifest."""
        if self.member in last.members:
            for kind, fields in _ending():
                self._event(kind, last, self.now, **fields)
        self._write("events", pa.Table.from_pylist(self.events, layout.EVENTS))
        for writer in self.writers.values():
            writer.close()
        group, who, size = self.member.group, self.member, RECORD_BYTES * self.index
        return {
            "commit": COMMIT, "group": group, "member": who.name, "incarnation": who.incarnation, "profile": "total",
            "host": "here", "boot_id": "boot", "life": who.key, "address": who.address,
            "file": f"{group}/{who.address}/000000.journal", "segment": 0, "begin": 0, "end": size, "first_index": 0,
            "last_index": self.index - 1, "rows": self.index, "bytes": size,
            "files": [str(self._path(table)) for table in self.writers], "kinds": sorted(self.kinds),
            "first_us": min(self.times), "last_us": max(self.times), "last_mono_us": max(self.times) - BEGIN_US,
        }  # fmt: skip

    def _path(self, table: str) -> Path:
        return Path(table) / f"group={self.member.group}" / f"day={_day(BEGIN_US)}" / f"{COMMIT}-{self.number}.parquet"

    def _write(self, table: str, rows: pa.Table) -> None:
        if table not in self.writers:
            path = self.out / self._path(table)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.writers[table] = pq.ParquetWriter(path, rows.schema)
        self.writers[table].write_table(rows)
        if len(rows):
            names = {number: name for name, number in layout.RUN_KINDS.items()}
            self.kinds |= {names.get(kind, kind) for kind in rows["kind"].unique().to_pylist()}
            self.times += [pc.min(rows["time_us"]).as_py(), pc.max(rows["time_us"]).as_py()]

    def _runs(self, view: View, kinds: Any, rows: Longs, index: Longs, times: Longs) -> pa.Table:
        delivered = kinds == DELIVER
        first, position = view.first[rows], view.position[rows]
        expected = first
        if view.lacks is self.member:
            position = position - np.where(delivered, view.count[0], 0)
            after = np.flatnonzero((view.origin[rows] == view.origin[0]) & delivered)[0]
            expected = first.copy()
            expected[after] = view.first[0]
        columns: dict[str, Any] = {
            "kind": kinds, "life": _same(self.member.key, rows), "index": index, "time_us": times,
            "mono_us": times - BEGIN_US, "view": _same(view.key, rows), "sender": self.keys[view.origin[rows]],
            "first": first, "count": view.count[rows].astype(np.int32), "bytes": BYTES * view.count[rows],
            "checksum": view.checksum[rows],
        }  # fmt: skip
        of_deliveries = {
            "stream": _same(view.creator.key, rows), "seq": rows, "position": position, "order": rows,
            "expected": expected, "counted": position,
        }  # fmt: skip
        for name, values in of_deliveries.items():
            columns[name] = pa.array(values, mask=~delivered)
        arrays = [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(rows), field.type)
            for field in layout.RUNS
        ]
        return pa.Table.from_arrays(arrays, schema=layout.RUNS)

    def _votes(self, view: View, kinds: Any, rows: Longs, index: Longs, times: Longs) -> None:
        votes = []
        for kind, run, at, now in zip(kinds.tolist(), rows.tolist(), index.tolist(), times.tolist(), strict=True):
            vote = {"life": self.member.key, "index": at, "time_us": now, "mono_us": now - BEGIN_US, "view": view.key}
            votes.append(vote | _vote(view, kind, run))
        if votes:
            self._write("votes", pa.Table.from_pylist(votes, layout.VOTES))

    def _event(self, kind: str, view: View | None, now: int, **fields: Any) -> None:
        row: dict[str, Any] = {
            "life": self.member.key, "index": self.index, "time_us": now, "mono_us": now - BEGIN_US, "kind": kind,
        }  # fmt: skip
        if view is not None:
            row |= {"view": view.key, "view_number": view.number, "view_creator": view.creator.address}
        if "previous_number" in fields:
            row["previous"] = key_of(self.member.group, fields["previous_number"], fields["previous_creator"])
        if "digest" in fields:
            fields["digest"] = list(fields["digest"].items())
        self.events.append(row | fields)
        self.index += 1


def _ending() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "heal", {}
    yield "quiet", {}
    yield "stats", {"gauges": [("window", 0), ("queue", 0)]}


def _vote(view: View, kind: int, run: int) -> dict[str, Any]:
    mark = run + 1 if kind == STABLE else view.purged(run)
    return {"kind": "stable" if kind == STABLE else "purge", "digest": [(view.creator.address, mark)]}


def _records(views: list[View], member: Member) -> Iterator[tuple[Any, int]]:
    """What `member` writes into its journal, and when."""
    addresses = [Member(member.group, rank) for rank in range(1_000)]
    begun = False
    for view in views:
        if member not in view.members:
            continue
        there, now = (view.number, view.creator.address), view.begin_us
        if not begun:
            yield ("start", None, {"gauges": {"bound_us": 10_000_000}}), now
            begun = True
        for kind, fields in happened(view, member):
            yield (kind, there, fields), now
        numbers = zip(*(array.tolist() for array in view.of(member)), strict=True)
        columns = [array.tolist() for array in (view.origin, view.first, view.count, view.checksum, view.position)]
        shift = int(view.count[0]) if member is view.lacks else 0
        for kind_number, run in numbers:
            now = view.begin_us + (2 * run + (kind_number != SEND)) * STEP_US + member.rank
            if kind_number > DELIVER:
                vote = _vote(view, kind_number, run)
                yield (vote["kind"], there, {"digest": dict(vote["digest"])}), now
                continue
            origin, first, count, checksum, position = (column[run] for column in columns)
            fields = {
                "origin": addresses[origin].name, "origin_incarnation": addresses[origin].incarnation, "first": first,
                "count": count, "bytes": BYTES * count, "checksum": checksum,
            }  # fmt: skip
            if kind_number == DELIVER:
                fields |= {"stream": view.creator.address, "seq": run, "position": position - shift, "order": run}
            yield ("send" if kind_number == SEND else "deliver", there, fields), now
        if view.dies is not None and view.dies is not member:
            yield ("fault", there, {"reason": "crash", "members": [view.dies.address]}), view.end_us - STEP_US
    if member in views[-1].members:
        for kind, fields in _ending():
            yield (kind, there, {name: dict(value) for name, value in fields.items()}), views[-1].end_us - STEP_US


def _lives(views: list[View]) -> list[Member]:
    return list(dict.fromkeys(member for view in views for member in view.members))


def _names(views: list[View]) -> list[dict[str, Any]]:
    lives = [{"group": life.group, "kind": "life", "key": life.key, "name": life.address} for life in _lives(views)]
    return lives + [
        {
            "group": view.creator.group, "kind": "view", "key": view.key, "number": view.number,
            "name": f"{view.number}:{view.creator.address}", "creator": view.creator.address,
        }
        for view in views
    ]  # fmt: skip


def _same(value: int, rows: Longs) -> Longs:
    return np.full(len(rows), value, np.int64)


def _day(time_us: int) -> date:
    return datetime.fromtimestamp(time_us / 1e6, UTC).date()


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])  # type: ignore[union-attr]
    parser.add_argument("out", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--views", type=int, default=30)
    parser.add_argument("--skip", action="store_true", help="one member lacks the first run of the last view")
    parser.add_argument("--journals", action="store_true")
    call = parser.parse_args()
    shape = Shape(call.records, call.groups, call.members, call.views, call.skip)
    print(write_journals(shape, call.out) if call.journals else write_tables(shape, call.out), "run records")


if __name__ == "__main__":
    main()
