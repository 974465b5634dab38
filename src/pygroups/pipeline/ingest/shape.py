"""One window of an incarnation's journal becomes rows of `runs`, `events` and `votes`, with keys in place of names."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pygroups.journal.columns import Decoded
from pygroups.journal.records import RUN_KINDS, VOTE_KINDS
from pygroups.journal.rows import Named, Numbers, Others, Rows
from pygroups.pipeline.ingest.counted import Counting
from pygroups.pipeline.ingest.expected import NOTHING, Numbering
from pygroups.pipeline.ingest.layout import EVENT_COLUMNS, EVENTS, RUNS, VOTES
from pygroups.pipeline.ingest.layout import RUN_KINDS as NUMBERS_OF
from pygroups.pipeline.ingest.names import Key, Keys, keys_of

_NUMBER_OF: Final = np.array([NUMBERS_OF[kind] for kind in RUN_KINDS], np.int8)


class Shape:
    """Rows of one incarnation.  `history`, `numbering` and `counting` go on from window to window."""

    def __init__(self, keys: Keys, life: int, history: str | None, numbering: Numbering, counting: Counting) -> None:
        self.keys = keys
        self.life = life
        self.history = history
        self.numbering = numbering
        self.counting = counting

    def tables(self, decoded: Decoded) -> dict[str, pa.Table]:
        """The rows of a window by table; a table without rows is left out."""
        histories = _Histories(decoded.histories, self.history, self.keys)
        expected, gaps = self._expected(decoded)
        found = {}
        if len(decoded.runs.kind):
            found["runs"] = self._runs(decoded.runs, histories, expected)
        if len(decoded.votes.kind):
            found["votes"] = self._votes(decoded.votes, histories)
        if decoded.others:
            parts = [self._events(other, histories, gaps) for other in decoded.others]
            place = np.concatenate([other.place for other in decoded.others])
            found["events"] = pa.concat_tables(parts).take(pa.array(np.argsort(place, kind="stable")))
        self.history = histories.last
        return found

    def _runs(self, rows: Rows, histories: "_Histories", expected: pa.Array) -> pa.Table:
        columns = self._prefix(rows, histories)
        columns["kind"] = pa.array(_NUMBER_OF[rows.kind])
        columns["sender"] = _keyed(rows.names["origin"], self.keys.life)
        for name in ("stream", "peer"):
            columns[name] = _keyed(rows.names[name], self.keys.address)
        for name, numbers in rows.numbers.items():
            columns[name] = _array(numbers)
        columns["count"] = columns["count"].cast(pa.int32())
        columns["expected"] = expected
        columns["counted"] = self._counted(rows)
        return pa.table([columns[name] for name in RUNS.names], RUNS)

    def _counted(self, rows: Rows) -> pa.Array:
        """The messages before each delivery in its view."""
        delivered = np.flatnonzero(rows.kind == RUN_KINDS.index("deliver"))
        views, nulls = keys_of(rows.names["view"], map(self.keys.view, rows.names["view"].names))
        count = rows.numbers["count"]
        counts = np.where(count.nulls, 0, count.values)[delivered]
        values, unknown = np.zeros(len(rows.kind), np.int64), np.ones(len(rows.kind), np.bool_)
        values[delivered], unknown[delivered] = self.counting.follow(views[delivered], nulls[delivered], counts)
        return pa.array(values, mask=unknown)

    def _votes(self, rows: Rows, histories: "_Histories") -> pa.Table:
        columns = self._prefix(rows, histories)
        names = pa.array(VOTE_KINDS)
        kind = pa.DictionaryArray.from_arrays(pa.array(rows.kind - np.int8(len(RUN_KINDS))), names)
        columns["kind"] = kind.cast(pa.string())
        columns["digest"] = rows.digest
        for name, numbers in rows.numbers.items():
            columns[name] = _array(numbers)
        return pa.table([columns[name] for name in VOTES.names], VOTES)

    def _prefix(self, rows: Rows, histories: "_Histories") -> dict[str, pa.Array]:
        return {
            "life": pa.array(np.full(len(rows.kind), self.life, np.int64)),
            "view": _keyed(rows.names["view"], self.keys.view),
            "history": histories.at(rows.place),
        }

    def _events(self, other: Others, histories: "_Histories", gaps: pa.Array) -> pa.Table:
        count = len(other.place)
        columns = other.columns
        mine = {
            "life": pa.array(np.full(count, self.life, np.int64)),
            "kind": pa.array([other.kind] * count, pa.string()),
            "view": self._pairs(columns, "view_number", "view_creator", self.keys.view),
            "history": histories.at(other.place),
            "previous": self._pairs(columns, "previous_number", "previous_creator", self.keys.view),
            "sender": self._pairs(columns, "origin", "origin_incarnation", self.keys.life),
        }
        if other.kind == "gap":
            mine["expected"] = gaps
        given = {name: columns[name] for name in ("index", "time_us", "mono_us", "view_number", "view_creator")}
        given |= {name: columns[name] for name in EVENT_COLUMNS if name in columns}
        all_columns = given | mine
        arrays = [all_columns.get(field.name, None) for field in EVENTS]
        return pa.table(
            [pa.nulls(count, field.type) if a is None else a for a, field in zip(arrays, EVENTS, strict=True)], EVENTS
        )

    def _pairs(self, columns: dict[str, pa.Array], first: str, second: str, key: Any) -> pa.Array:
        if first not in columns:
            return None
        pairs = zip(columns[first].to_pylist(), columns[second].to_pylist(), strict=True)
        return pa.array([None if pair == (None, None) else key(pair) for pair in pairs], pa.int64())

    def _expected(self, decoded: Decoded) -> tuple[pa.Array, pa.Array]:
        """The numbers expected before each run (of kind DELIVER), and before each gap."""
        delivered = np.flatnonzero(decoded.runs.kind == RUN_KINDS.index("deliver"))
        runs = decoded.runs
        senders = [self.keys.life(pair) for pair in runs.names["origin"].names] if len(runs.kind) else []
        codes = runs.names["origin"].codes[delivered]
        behind = _behind(runs.numbers["first"], runs.numbers["count"])[delivered]
        place = runs.place[delivered]
        gaps = [other for other in decoded.others if other.kind == "gap"]
        for gap in gaps:
            pairs = zip(gap.columns["origin"].to_pylist(), gap.columns["origin_incarnation"].to_pylist(), strict=True)
            codes = np.concatenate([codes, np.arange(len(senders), len(senders) + len(gap.place), dtype=np.int32)])
            senders += [None if pair == (None, None) else self.keys.life(pair) for pair in pairs]
            behind = np.concatenate([behind, _behind(_numbers(gap, "first"), _numbers(gap, "count"))])
            place = np.concatenate([place, gap.place])
        values, nulls = self._in_epochs(decoded.others, place, codes, senders, behind)
        all_runs, no_runs = np.zeros(len(runs.kind), np.int64), np.ones(len(runs.kind), np.bool_)
        all_runs[delivered], no_runs[delivered] = values[: len(delivered)], nulls[: len(delivered)]
        rest = slice(len(delivered), None)
        return pa.array(all_runs, mask=no_runs), pa.array(values[rest], mask=nulls[rest])

    def _in_epochs(
        self,
        others: Sequence[Others],
        place: NDArray[np.int64],
        codes: NDArray[np.int32],
        senders: list[Key],
        behind: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """`Numbering.follow` in the order of the places, begun anew at each view with a given state."""
        values, nulls = np.zeros(len(place), np.int64), np.ones(len(place), np.bool_)
        given = self._given(others)
        order = np.argsort(place, kind="stable")
        cuts = np.searchsorted(place[order], [at for at, _ in given])
        for number, part in enumerate(np.split(order, cuts)):
            if number:
                self.numbering.begin(given[number - 1][1])
            if len(part):
                found = self.numbering.follow(codes[part], senders, behind[part])
                values[part], nulls[part] = found.values, found.nulls
        return values, nulls

    def _given(self, others: Sequence[Others]) -> list[tuple[int, dict[int, int]]]:
        """The views that begin with a given state, and the numbers that this state covers."""
        found = []
        for other in others:
            if other.kind != "view":
                continue
            for place, digest in zip(other.place.tolist(), other.columns["digest"].to_pylist(), strict=True):
                if digest is not None:
                    marks = {self.keys.address(name): mark or 0 for name, mark in digest}
                    found.append((place, {key: mark for key, mark in marks.items() if key is not None}))
        return sorted(found, key=lambda one: one[0])


class _Histories:
    """The history of each record of a window."""

    def __init__(self, changes: list[tuple[int, str | None]], before: str | None, keys: Keys) -> None:
        self.places = np.array([place for place, _ in changes], np.int64)
        told = [before, *(history for _, history in changes)]
        self.last = told[-1]
        self.never = all(history is None for history in told)
        self.keys = Named(np.zeros(0, np.int32), [keys.history(history) for history in told])

    def at(self, place: NDArray[np.int64]) -> pa.Array:
        if self.never:
            return pa.nulls(len(place), pa.int64())
        codes = np.searchsorted(self.places, place, side="right").astype(np.int32)
        values, nulls = keys_of(Named(codes, []), self.keys.names)
        return pa.array(values, mask=nulls)


def _keyed(column: Named, key: Any) -> pa.Array:
    values, nulls = keys_of(column, map(key, column.names))
    return pa.array(values, mask=nulls if nulls.any() else None)


def _array(numbers: Numbers) -> pa.Array:
    if numbers.nulls.all():
        return pa.nulls(len(numbers.nulls), pa.int64())
    return pa.array(numbers.values, mask=numbers.nulls if numbers.nulls.any() else None)


def _numbers(other: Others, name: str) -> Numbers:
    column = other.columns[name]
    return Numbers(column.fill_null(0).to_numpy().astype(np.int64), column.is_null().to_numpy(zero_copy_only=False))


def _behind(first: Numbers, count: Numbers) -> NDArray[np.int64]:
    return np.where(first.nulls | count.nulls, NOTHING, first.values + count.values)
