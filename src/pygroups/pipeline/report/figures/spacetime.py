"""A space-time diagram: members as lanes, records in the order of their clocks, an arrow from each send to its
deliveries. Columns are steps, not seconds, so that records of one microsecond stand apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from pygroups.pipeline.report.figures import svg
from pygroups.pipeline.report.findings import Diagram, NearbyRecord
from pygroups.pipeline.verdict import Violation

TOP = 4
LANE = 46
LANE_LINE = 24
RADIUS = 5
LABELLED_AT_MOST = 16
LEFT = 0.22
RIGHT = 0.03
CROWDED = 0.09
LONGEST_LANE = 22
Place = tuple[float, float]


def spacetime(diagram: Diagram) -> Markup:
    """The records around a violation; the records that it names are drawn strongly."""
    violation = diagram.violation
    events = sorted(diagram.events, key=lambda event: (event.time_us, event.kind != "send", event.index))
    lanes = _lanes(violation, events)
    places = _places(events, lanes)
    bottom = TOP + LANE * len(lanes)
    shapes = [_lane(lane, row) for row, lane in enumerate(lanes)]
    shapes.extend(_arrows(events, places, violation))
    shapes.extend(_points(events, places, violation))
    return svg.picture(shapes, bottom + 6, _description(violation, events, lanes), "spacetime")


def _lanes(violation: Violation, events: Sequence[NearbyRecord]) -> list[str]:
    concerned = [violation.origin, violation.member, violation.other]
    present = {_address(event) for event in events}
    first = [lane for lane in dict.fromkeys(concerned) if lane in present and lane is not None]
    return first + sorted(present - set(first))


def _address(event: NearbyRecord) -> str:
    return f"{event.member}@{event.incarnation}"


def _places(events: Sequence[NearbyRecord], lanes: Sequence[str]) -> list[Place]:
    rows = {lane: row for row, lane in enumerate(lanes)}
    step = (1 - LEFT - RIGHT) / max(1, len(events) - 1)
    return [
        (LEFT + step * column, TOP + LANE * rows[_address(event)] + LANE_LINE) for column, event in enumerate(events)
    ]


def _lane(lane: str, row: int) -> Markup:
    level = TOP + LANE * row + LANE_LINE
    shown = lane if len(lane) <= LONGEST_LANE else lane[: LONGEST_LANE - 1] + "…"
    return svg.group(
        svg.line(LEFT - 0.02, level, 1, level, class_="lane-line"),
        svg.text(0, level + 4, shown, class_="lane-name"),
        title=lane,
    )


def _run(event: NearbyRecord) -> tuple[object, ...]:
    return event.origin, event.origin_incarnation, event.first, event.peer


def _arrows(events: Sequence[NearbyRecord], places: Sequence[Place], violation: Violation) -> Iterable[Markup]:
    sent = {_run(event): place for event, place in zip(events, places, strict=True) if event.kind.endswith("send")}
    for event, place in zip(events, places, strict=True):
        start = sent.get(_run(event))
        if event.kind.endswith("send") or start is None or start[1] == place[1]:
            continue
        strength = "strong" if _concerned(event, violation) else "faint"
        yield svg.line(*start, *place, class_=f"arrow {strength}", marker_end=f"url(#arrow-{strength})")


def _concerned(event: NearbyRecord, violation: Violation) -> bool:
    if violation.first is None:
        at = violation.position
        return at is not None and event.position is not None and event.position <= at < event.position + _size(event)
    same_origin = violation.origin in (event.origin, f"{event.origin}@{event.origin_incarnation}")
    return same_origin and event.first is not None and event.first <= violation.first < event.first + _size(event)


def _size(event: NearbyRecord) -> int:
    return max(1, event.count or 1)


def _points(events: Sequence[NearbyRecord], places: Sequence[Place], violation: Violation) -> Iterable[Markup]:
    """A dot for each record; a name that would touch the one before it on its lane goes above the lane."""
    last_below: dict[float, float] = {}
    for event, (x, y) in zip(events, places, strict=True):
        concerned = _concerned(event, violation)
        kind = "send" if event.kind.endswith("send") else "deliver"
        css_class = f"point {kind} {'concerned' if concerned else ''}".strip()
        shapes = [svg.dot(x, y, RADIUS + concerned, class_=css_class)]
        if concerned or len(events) <= LABELLED_AT_MOST:
            crowded = x - last_below.get(y, -1.0) < CROWDED
            last_below[y] = last_below[y] if crowded else x
            level = y - 10 if crowded else y + 18
            shapes.append(svg.text(x, level, _name(event), class_="point-name", text_anchor="middle"))
        yield svg.group(*shapes, title=_in_words(event))


def _name(event: NearbyRecord) -> str:
    last = (event.first or 0) + _size(event) - 1
    return f"{event.origin}:{event.first}" + (f"–{last}" if last != event.first else "")


def _in_words(event: NearbyRecord) -> str:
    verb = "sends" if event.kind.endswith("send") else "delivers"
    where = "" if event.position is None else f" at position {event.position}"
    return f"{_address(event)} {verb} {_name(event)}{where}"


def _description(violation: Violation, events: Sequence[NearbyRecord], lanes: Sequence[str]) -> str:
    kinds: Mapping[str, int] = {
        kind: sum(event.kind.endswith(kind) for event in events) for kind in ("send", "deliver")
    }
    return (
        f"Space-time diagram around a violation of {violation.promise}: {kinds['send']} sends and "
        f"{kinds['deliver']} deliveries at {', '.join(lanes)}. {violation.detail}"
    )
