"""The records around a violation: what was sent and delivered near the place that a witness names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.report.findings import Diagram, Event
from pygroups.pipeline.verdict import Verdict, Violation

DIAGRAMS: Final = 12
DIAGRAMS_PER_PROMISE: Final = 3
NEAR: Final = 512
EVENTS_SHOWN: Final = 36
FAR: Final = 1 << 40
PLACES: Final = (
    "number int, group string, view_number long, view_creator string, origin string, origin_incarnation string, "
    "near_first long, near_position long"
)
RUNS: Final = "number int, group string, origin string, origin_incarnation string, first long"
SENDS: Final = ("send", "unicast_send")
KINDS: Final = (*SENDS, "deliver", "unicast_deliver")
EVENT: Final = tuple(Event.__dataclass_fields__)


@dataclass(frozen=True)
class _Place:
    """Where a violation is, in columns of the journal."""

    number: int
    group: str
    view_number: int | None
    view_creator: str | None
    origin: str | None
    origin_incarnation: str | None
    near_first: int | None
    near_position: int | None


def diagrams(records: DataFrame, verdicts: Sequence[Verdict]) -> list[Diagram]:
    """Surroundings of the first few violations of each broken promise; a violation that names no place has none."""
    placed = [violation for verdict in verdicts for violation in _worth_drawing(verdict)][:DIAGRAMS]
    if not placed:
        return []
    places = [_place(number, violation) for number, violation in enumerate(placed)]
    nearest = _events(records, places)
    return list(_with_events(placed, nearest + _sends_of(records, nearest)))


def _worth_drawing(verdict: Verdict) -> list[Violation]:
    """One violation of each view, pair of members and sender: the next of the same kind would look the same."""
    apart: dict[tuple[str | None, ...], Violation] = {}
    for violation in verdict.violations:
        if violation.first is not None or violation.position is not None:
            where = (violation.group, violation.view, violation.member, violation.other, violation.origin)
            apart.setdefault(where, violation)
    return list(apart.values())[:DIAGRAMS_PER_PROMISE]


def _place(number: int, violation: Violation) -> _Place:
    view_number, _, view_creator = (violation.view or "").partition(":")
    origin, _, incarnation = (violation.origin or "").partition("@")
    return _Place(
        number=number,
        group=violation.group,
        view_number=int(view_number) if view_number.isdigit() else None,
        view_creator=view_creator or None,
        origin=origin or None,
        origin_incarnation=incarnation or None,
        near_first=violation.first,
        near_position=violation.position,
    )


def _events(records: DataFrame, places: Sequence[_Place]) -> list[dict[str, object]]:
    """The nearest records of each place, as rows that carry its number."""
    session = records.sparkSession
    rows = [tuple(vars(place).values()) for place in places]
    near = F.broadcast(session.createDataFrame(rows, PLACES)).alias("place")
    distance = F.least(_distance_in_view(), _distance_in_stream())
    of_place = Window.partitionBy("number").orderBy("distance", "time_us", "index")
    nearest = (
        records.where(F.col("kind").isin(*KINDS))
        .alias("record")
        .join(near, F.col("record.group") == F.col("place.group"))
        .withColumn("distance", distance)
        .where(F.col("distance") <= NEAR)
        .select("record.*", "number", "distance")
        .withColumn("rank", F.row_number().over(of_place))
        .where(F.col("rank") <= EVENTS_SHOWN)
    )
    return [row.asDict() for row in nearest.select("number", "group", *EVENT).collect()]


def _sends_of(records: DataFrame, found: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """The sends of what was delivered near a place, where they are not near themselves: without them no arrow."""
    sent = {_run(row) for row in found if row["kind"] in SENDS}
    missing = {_run(row) for row in found} - sent
    if not missing:
        return []
    runs = F.broadcast(records.sparkSession.createDataFrame(sorted(missing, key=str), RUNS))
    keys = ["group", "origin", "origin_incarnation", "first"]
    sends = records.where(F.col("kind").isin(*SENDS)).join(runs, keys)
    return [row.asDict() for row in sends.select("number", "group", *EVENT).collect()]


def _run(row: dict[str, object]) -> tuple[object, ...]:
    return row["number"], row["group"], row["origin"], row["origin_incarnation"], row["first"]


def _distance_in_view() -> Column:
    """How many messages of the same view lie between a delivery and the place."""
    same_view = (F.col("record.view_number") == F.col("place.view_number")) & (
        F.col("record.view_creator") == F.col("place.view_creator")
    )
    away = F.abs(F.col("record.position") - F.col("near_position"))
    return F.coalesce(F.when(same_view, away), F.lit(FAR))


def _distance_in_stream() -> Column:
    """How many messages of the same sender lie between a run and the place."""
    same_origin = (F.col("record.origin") == F.col("place.origin")) & (
        F.col("place.origin_incarnation").isNull()
        | (F.col("record.origin_incarnation") == F.col("place.origin_incarnation"))
    )
    return F.coalesce(F.when(same_origin, F.abs(F.col("record.first") - F.col("near_first"))), F.lit(FAR))


def _with_events(placed: Sequence[Violation], rows: Sequence[dict[str, object]]) -> Iterable[Diagram]:
    for number, violation in enumerate(placed):
        own = [{name: row[name] for name in EVENT} for row in rows if row["number"] == number]
        if own:
            yield Diagram(violation, [Event(**event) for event in own])  # type: ignore[arg-type]
