"""Leaves out of the table what no view that is still open needs, so that it grows with open views, not with time.

A closed view stays until all views that follow it are closed too: a message may be delivered in one of them.  Of what
goes, three things stay: the numbers that each member has delivered (for no-duplication), the greatest of them for each
sender (`marks`), and the last view before (for view-monotonic).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pygroups.pipeline.ingest import Table, layout
from pygroups.pipeline.ingest.known import CARRIED, known_to
from pygroups.pipeline.ingest.layout import DELIVER, EVENTS, MANIFEST, NAMES, RUNS, SEND
from pygroups.pipeline.ingest.sink import Sink, escaped
from pygroups.pipeline.ingest.table import read_rows, write_rows
from pygroups.pipeline.stream.known import PROOFS, Known, Row, successors

DELIVERED: Final = pa.schema([*RUNS, ("group", pa.string())])
"""Deliveries of earlier views, overlapping and adjacent ones as one row: without a view, an index or a position."""
_FILE: Final = "delivered.parquet"
_STORY: Final = ("start", "stop", "leave", "quiet", "fault", "heal")
"""The kinds of event that stay as long as their incarnation: few in a life."""


@dataclass(frozen=True)
class Kept:
    """What stays: views with all their records, lives, and as pairs of a life and an index the views before them."""

    views: frozenset[int]
    lives: frozenset[int]
    before: frozenset[tuple[int, int]]


def kept_of(known: Known, closed: Collection[int]) -> Kept:
    """What has to stay when `closed` are the closed views."""
    following = successors([known.views_of(key) for key in known.lives])
    views = {
        view for view in known.views if view not in closed or any(one not in closed for one in following.get(view, ()))
    }
    named = {(known.views[view].group, name) for view in views for name in known.views[view].members}
    lives = set()
    before = set()
    for key, life in known.lives.items():
        order = known.order.get(key, [])
        here = [index for index, view in order if view in views]
        begins = not order and life["kinds"].isdisjoint(PROOFS)
        if here or begins or (life["group"], life["address"]) in named:
            lives.add(key)
            last = [(key, index) for index, _ in order if not here or index < here[0]]
            before.update(last[-1:])
    return Kept(frozenset(views), frozenset(lives), frozenset(before))


def delivered_in(table: Path) -> pa.Table:
    """The rows of earlier deliveries that stand beside a table."""
    file = table / _FILE
    return read_rows(file, DELIVERED) if file.exists() else DELIVERED.empty_table()


def prune(table: Table, known: Known, kept: Kept, out: Path, marks: dict[int, int]) -> str:
    """Write what is kept of `table` as a new table `out`, and bring `marks` up to date.  Returns the new commit."""
    commit = max([*table.commits, "0"])
    out.mkdir(parents=True)
    (out / layout.TABLE_FILE).write_bytes((table.path / layout.TABLE_FILE).read_bytes())
    for folder in ("manifest", "carried", "names"):
        (out / folder).mkdir()
    sink = Sink(out, commit, 0)
    files: dict[int, set[str]] = defaultdict(set)
    rows: dict[int, int] = defaultdict(int)
    keys: set[int] = set(kept.views) | set(kept.lives)
    passed = _Delivered(delivered_in(table.path), kept, marks, _given(table))
    for group, name, part in _rows(table):
        wanted = part.filter(_kept_runs(part, kept, passed, group) if name == "runs" else _kept_events(part, kept))
        if wanted.num_rows:
            found = sink.add(group, {name: wanted})
            keys.update(*(_keys(wanted, column) for column in ("sender", "view", "history", "previous")))
            for life, number in _counts(wanted).items():
                files[life] |= found
                rows[life] += number
    sink.close()
    write_rows(_names(table, keys), out / "names" / f"{commit}-0.parquet")
    write_rows(passed.table(), out / _FILE)
    write_rows(pa.Table.from_pylist(list(_carried(table, kept)), CARRIED), out / "carried" / f"{commit}-0.parquet")
    write_rows(_manifest(known, kept, commit, files, rows), out / "manifest" / f"{commit}.parquet")
    for sender in marks.keys() - kept.lives:
        del marks[sender]
    return commit


def _given(table: Table) -> dict[int, int]:
    """For lives that were given a state the index of the last view that begins with one."""
    found: dict[int, int] = {}
    for file in table.events_files:
        part = read_rows(file, EVENTS)
        part = part.filter(pc.and_(pc.equal(part["kind"], "view"), pc.is_valid(part["digest"])))
        for life, index in zip(part["life"].to_pylist(), part["index"].to_pylist(), strict=True):
            found[life] = max(found.get(life, index), index)
    return found


def _rows(table: Table) -> Iterator[tuple[str, str, pa.Table]]:
    """The runs and events of a table, one file after the other by group."""
    for group in table.groups:
        folder = f"group={escaped(group)}"
        for name, files, schema in (("runs", table.runs_files, RUNS), ("events", table.events_files, EVENTS)):
            for file in files:
                if Path(file).parts[-3] == folder:
                    yield group, name, read_rows(file, schema)


def _within(column: pa.ChunkedArray, keys: Collection[int]) -> Any:
    return pc.fill_null(pc.is_in(column, pa.array(sorted(keys), pa.int64())), False)


def _kept_runs(part: pa.Table, kept: Kept, passed: "_Delivered", group: str) -> Any:
    """Which runs stay: those of kept views, and sends that nobody has delivered yet."""
    here = _within(part["view"], kept.views)
    gone = part.filter(pc.and_(pc.invert(here), pc.equal(part["kind"], DELIVER)))
    passed.add(group, gone)
    mark = pa.array([passed.marks.get(life, 0) for life in part["life"].to_pylist()], pa.int64())
    waiting = pc.and_(pc.equal(part["kind"], SEND), pc.fill_null(pc.greater(part["first"], mark), False))
    kinds = pc.or_(pc.equal(part["kind"], DELIVER), pc.equal(part["kind"], SEND))
    return pc.and_(kinds, pc.or_(here, pc.and_(waiting, _within(part["life"], kept.lives))))


def _kept_events(part: pa.Table, kept: Kept) -> Any:
    is_view = pc.equal(part["kind"], "view")
    pairs = zip(part["life"].to_pylist(), part["index"].to_pylist(), strict=True)
    before = pa.array([pair in kept.before for pair in pairs], pa.bool_())
    views = pc.and_(is_view, pc.or_(_within(part["view"], kept.views), before))
    story = pc.and_(pc.is_in(part["kind"], pa.array(_STORY)), _within(part["life"], kept.lives))
    return pc.or_(views, story)


def _keys(part: pa.Table, column: str) -> Iterable[int]:
    return pc.unique(part[column]).drop_null().to_pylist() if column in part.column_names else ()


def _counts(part: pa.Table) -> dict[int, int]:
    counts = pc.value_counts(part["life"]).to_pylist()
    return {one["values"]: one["counts"] for one in counts}


def _names(table: Table, keys: Collection[int]) -> pa.Table:
    parts = [read_rows(file, NAMES) for file in table.names_files]
    names = pa.concat_tables(parts) if parts else NAMES.empty_table()
    return names.filter(_within(names["key"], keys)).group_by(NAMES.names).aggregate([]).cast(NAMES)


def _carried(table: Table, kept: Kept) -> Iterator[Row]:
    """The places in the journals.  Those of a life that is gone, and its journal too, go."""
    for life, state in known_to(table).items():
        if life in kept.lives or any(Path(one.file).exists() for one in state.segments.values()):
            yield state.row(life, sorted(state.segments))


def _manifest(
    known: Known, kept: Kept, commit: str, files: Mapping[int, set[str]], rows: Mapping[int, int]
) -> pa.Table:
    """One row for each kept life."""
    told = []
    for key in sorted(kept.lives):
        life = known.lives[key]
        more = {"commit": commit, "files": sorted(files.get(key, ())), "rows": rows.get(key, 0), "begin": 0}
        told.append({name: (life | more)[name] for name in MANIFEST.names} | {"kinds": sorted(life["kinds"])})
    return pa.Table.from_pylist(told, MANIFEST)


class _Delivered:
    """The numbers that each kept life has delivered in views that are gone, as intervals by its senders; of a life that
    was `given` a state those behind it."""

    def __init__(self, before: pa.Table, kept: Kept, marks: dict[int, int], given: Mapping[int, int]) -> None:
        self.marks = marks
        self._kept = kept
        self._given = given
        self._groups: dict[int, str] = {}
        self._parts: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for row in before.select(["group", "life", "sender", "first", "count"]).to_pylist():
            if row["life"] not in given:
                self._add(row["group"], row["life"], row["sender"], row["first"], row["count"])

    def add(self, group: str, gone: pa.Table) -> None:
        """Deliveries that the table has no more."""
        columns = (gone[name].to_pylist() for name in ("life", "index", "sender", "first", "count"))
        for life, index, sender, first, count in zip(*columns, strict=True):
            if sender is None or first is None or count is None:
                continue
            self.marks[sender] = max(self.marks.get(sender, 0), first + count - 1)
            if index >= self._given.get(life, 0):
                self._add(group, life, sender, first, count)

    def _add(self, group: str, life: int, sender: int, first: int, count: int) -> None:
        self._groups[life] = group
        parts = self._parts[life, sender]
        if parts and parts[-1][1] == first:
            parts[-1] = parts[-1][0], first + count
        else:
            parts.append((first, first + count))

    def table(self) -> pa.Table:
        """The rows of the kept lives."""
        rows = [
            {"kind": DELIVER, "life": life, "index": -1, "sender": sender, "first": low, "count": high - low}
            | {"group": self._groups[life]}
            for (life, sender), parts in sorted(self._parts.items())
            if life in self._kept.lives
            for low, high in _joined(parts)
        ]
        return pa.Table.from_pylist(rows, DELIVERED)


def _joined(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open intervals, those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
