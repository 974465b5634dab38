"""The records around a violation: sends and deliveries near the place that a witness names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.ingest.keys import life_key, view_key
from pygroups.pipeline.ingest.layout import DELIVER, RUN_KINDS, SEND, UNICAST_DELIVER, UNICAST_SEND
from pygroups.pipeline.report.findings import Diagram, NearbyRecord
from pygroups.pipeline.verdict import Verdict, Violation

DIAGRAMS: Final = 12
DIAGRAMS_PER_PROMISE: Final = 3
NEAR: Final = 512
EVENTS_SHOWN: Final = 36
SENDS: Final = (SEND, UNICAST_SEND)
KINDS: Final = (*SENDS, DELIVER, UNICAST_DELIVER)
KIND_NAMES: Final = {number: name for name, number in RUN_KINDS.items()}
COLUMNS: Final = ("kind", "life", "index", "time_us", "sender", "first", "count", "position", "peer")
Row = dict[str, Any]


@dataclass(frozen=True)
class _Place:
    """The place of a violation: `view` and `sender` are keys."""

    number: int
    view: int | None
    sender: int | None
    first: int | None
    position: int | None

    def distance(self) -> str:
        """How many messages of the same view, or of the same sender, lie between a run and the place; null if far."""
        ways = (("view", self.view, "position", self.position), ("sender", self.sender, "first", self.first))
        near = [
            f"if({where} = {key}L and {at} between {value - NEAR}L and {value + NEAR}L, abs({at} - {value}L), null)"
            for where, key, at, value in ways
            if key is not None and value is not None
        ]
        return f"least({', '.join([*near, 'null', 'null'])})"


def diagrams(history: History, verdicts: Sequence[Verdict]) -> list[Diagram]:
    """Surroundings of the first few violations of each broken promise; a violation that names no place has none."""
    placed = [violation for verdict in verdicts for violation in _worth_drawing(verdict)][:DIAGRAMS]
    if not placed:
        return []
    near = history.of_groups(sorted({violation.group for violation in placed}))
    nearest = _events(near, [_place(number, violation) for number, violation in enumerate(placed)])
    found = nearest + _sends_of(near, nearest)
    return list(_with_events(placed, _named(near, found)))


def _worth_drawing(verdict: Verdict) -> list[Violation]:
    """One violation of each view, pair of members and sender: the next of the same kind would look the same."""
    apart: dict[tuple[str | None, ...], Violation] = {}
    for violation in verdict.violations:
        if violation.first is not None or violation.position is not None:
            where = (violation.group, violation.view, violation.member, violation.other, violation.origin)
            apart.setdefault(where, violation)
    return list(apart.values())[:DIAGRAMS_PER_PROMISE]


def _place(number: int, violation: Violation) -> _Place:
    view_number, _, creator = (violation.view or "").partition(":")
    return _Place(
        number=number,
        view=view_key(violation.group, int(view_number), creator) if view_number.isdigit() else None,
        sender=life_key(violation.group, violation.origin) if violation.origin else None,
        first=violation.first,
        position=violation.position,
    )


def _events(history: History, places: Sequence[_Place]) -> list[Row]:
    """The nearest records of each place, as rows with its number. Only records near a place are compared."""
    reached = ", ".join(f"named_struct('number', {place.number}, 'distance', {place.distance()})" for place in places)
    near = f"explode(filter(array({reached}), place -> place.distance is not null)) as place"
    rank = "row_number() over (partition by place.number order by place.distance, time_us, index) as rank"
    runs = history.runs.where(F.col("kind").isin(*KINDS)).selectExpr(*COLUMNS, near)
    return _rows(runs.selectExpr("*", rank).where(F.col("rank") <= EVENTS_SHOWN), "place.number as number")


def _sends_of(history: History, found: Sequence[Row]) -> list[Row]:
    """The sends of runs that were delivered near a place, if the sends themselves are far: the arrows need them."""
    sent = {_run(row) for row in found if row["kind"] in SENDS}
    missing = {_run(row) for row in found} - sent
    if not missing:
        return []
    runs = history.runs.sparkSession.createDataFrame(sorted(missing), "number int, sender long, first long")
    return _rows(history.runs.where(F.col("kind").isin(*SENDS)).join(runs, ["sender", "first"]), "number")


def _rows(frame: DataFrame, number: str) -> list[Row]:
    return [row.asDict() for row in frame.selectExpr(number, *COLUMNS).collect()]


def _run(row: Row) -> tuple[int, int, int]:
    return row["number"], row["sender"], row["first"]


def _named(history: History, rows: Sequence[Row]) -> list[Row]:
    """The rows as they are shown, with the addresses that their keys stand for."""
    keys = {row[name] for row in rows for name in ("life", "sender", "peer")}
    if not keys:
        return []
    names = history.names.where("kind = 'life'").where(F.col("key").isin(*sorted(keys - {None})))
    addresses = {row["key"]: row["name"] for row in names.collect()}
    return [_shown(row, addresses) for row in rows]


def _shown(row: Row, addresses: dict[int, str]) -> Row:
    member, _, incarnation = addresses[row["life"]].partition("@")
    origin, _, origin_incarnation = addresses.get(row["sender"], "").partition("@")
    return {
        **{name: row[name] for name in ("number", "time_us", "index", "first", "count", "position")},
        "kind": KIND_NAMES[row["kind"]],
        "member": member,
        "incarnation": incarnation,
        "origin": origin or None,
        "origin_incarnation": origin_incarnation or None,
        "peer": addresses.get(row["peer"]),
    }


def _with_events(placed: Sequence[Violation], rows: Sequence[Row]) -> Iterable[Diagram]:
    for number, violation in enumerate(placed):
        own = [
            {name: value for name, value in row.items() if name != "number"} for row in rows if row["number"] == number
        ]
        if own:
            yield Diagram(violation, [NearbyRecord(**event) for event in own])
