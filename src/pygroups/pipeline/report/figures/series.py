"""Numbers over time: latency as lines on a logarithmic scale, throughput as one small area per member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from pygroups.pipeline.report.figures import svg
from pygroups.pipeline.report.figures.scale import (
    Axis,
    LogAxis,
    count,
    duration,
    log_axis,
    short,
    since,
    size_in_bytes,
    time_axis,
)
from pygroups.pipeline.report.figures.timeline import mark_lines, time_grid
from pygroups.pipeline.report.findings import GroupFindings, Latency, Traffic

TOP = 26
HEIGHT = 220
AXIS = 30
STRIP = 64
STRIP_AREA = 36
JOINED_STRETCHES = 3
PERCENTILES = (("p50_us", "half"), ("p90_us", "nine-tenths"), ("p99_us", "worst-hundredth"))
US_PER_SECOND = 1_000_000


def latency(group: GroupFindings) -> Markup:
    """Median, 90th and 99th percentile of delivery latency over time."""
    axis = time_axis(group.start_us, group.end_us)
    words = since(group.start_us)
    values = [value for point in group.latency for value in (point.p50_us, point.p90_us, point.p99_us)]
    scale = log_axis(values)
    bottom = TOP + HEIGHT
    shapes = [*time_grid(axis, words, TOP, bottom), *(_level(scale, tick) for tick in scale.ticks)]
    for name, css_class in reversed(PERCENTILES):
        shapes.extend(_percentile(group, name, css_class, axis, scale))
    shapes.extend(mark_lines(group.marks, axis, words, TOP, bottom))
    shapes.extend(svg.text(0, _height(scale, tick) - 4, duration(tick), class_="tick") for tick in scale.ticks)
    shapes.extend(_pointers(group.latency, group.bucket_us, axis, lambda point: _latency_in_words(point, words)))
    return svg.picture(shapes, bottom + AXIS, _latency_description(group), "latency")


def _height(scale: LogAxis, value: float) -> float:
    return TOP + (1 - scale.share(value)) * HEIGHT


def _level(scale: LogAxis, tick: float) -> Markup:
    return svg.line(0, _height(scale, tick), 1, _height(scale, tick), class_="grid level")


def _percentile(group: GroupFindings, name: str, css_class: str, axis: Axis, scale: LogAxis) -> Iterable[Markup]:
    middle = group.bucket_us / 2
    for stretch in _joined(group.latency, group.bucket_us):
        points = [(axis.share(point.bucket + middle), scale.share(getattr(point, name))) for point in stretch]
        if len(points) == 1:
            yield svg.dot(points[0][0], TOP + (1 - points[0][1]) * HEIGHT, 2, class_=f"series-dot {css_class}")
        else:
            yield svg.curve(points, TOP, HEIGHT, class_=f"series {css_class}")


def _joined(points: Sequence[Latency], bucket_us: int) -> list[list[Latency]]:
    """Points in pieces that are drawn as one line: where more than a few stretches had no delivery, the line breaks."""
    pieces: list[list[Latency]] = []
    for point in sorted(points, key=lambda point: point.bucket):
        if pieces and point.bucket - pieces[-1][-1].bucket <= JOINED_STRETCHES * bucket_us:
            pieces[-1].append(point)
        else:
            pieces.append([point])
    return pieces


def _pointers(
    points: Sequence[Latency], bucket_us: int, axis: Axis, words: Callable[[Latency], str]
) -> Iterable[Markup]:
    """Invisible columns that carry the numbers, for a reader who points at a place in the figure."""
    for point in points:
        start = axis.share(point.bucket)
        column = svg.box(start, TOP, axis.share(point.bucket + bucket_us) - start, HEIGHT, class_="pointer")
        yield svg.group(column, title=words(point))


def _latency_in_words(point: Latency, words: Callable[[float], str]) -> str:
    return (
        f"{words(point.bucket)}: {count(point.messages)} deliveries, half within {duration(point.p50_us)}, "
        f"90 % within {duration(point.p90_us)}, 99 % within {duration(point.p99_us)}"
    )


def _latency_description(group: GroupFindings) -> str:
    worst = max(group.latency, key=lambda point: point.p99_us)
    return (
        f"Delivery latency of group {group.name} over time, on a logarithmic scale. The highest 99th percentile is "
        f"{duration(worst.p99_us)}, {since(group.start_us)(worst.bucket)} after the start."
    )


def throughput(group: GroupFindings) -> Markup:
    """Messages per second that each name delivered, all on one scale, under the sends of the whole group."""
    axis = time_axis(group.start_us, group.end_us)
    words = since(group.start_us)
    strips = [("sent by all", _amounts(group.sent, "sent"), "sent")]
    for name in group.names:
        mine = [point for point in group.traffic if point.member == name]
        strips.append((name, _amounts(mine, "delivered"), "delivered"))
    per_second = US_PER_SECOND / group.bucket_us
    highest = max((messages for _, series, _ in strips for messages, _ in series.values()), default=0) * per_second
    scale = Axis(0.0, max(1.0, highest), ())
    bottom = TOP + STRIP * len(strips)
    shapes = list(time_grid(axis, words, TOP, bottom))
    for row, (name, series, kind) in enumerate(strips):
        shapes.extend(_strip(name, series, kind, TOP + STRIP * row, group, axis, scale))
    shapes.extend(mark_lines(group.marks, axis, words, TOP, bottom))
    for row, (name, series, _) in enumerate(strips):
        shapes.extend(_label(name, series, TOP + STRIP * row, per_second))
    return svg.picture(shapes, bottom + AXIS, _throughput_description(group, highest), "throughput")


def _amounts(traffic: Sequence[Traffic], what: str) -> dict[int, tuple[int, int]]:
    """Messages and bytes `sent` or `delivered` per stretch; stretches with none are left out."""
    amounts = {p.bucket: (getattr(p, f"{what}_messages"), getattr(p, f"{what}_bytes")) for p in traffic}
    return {bucket: amount for bucket, amount in amounts.items() if amount[0]}


def _strip(
    name: str,
    series: dict[int, tuple[int, int]],
    kind: str,
    top: float,
    group: GroupFindings,
    axis: Axis,
    scale: Axis,
) -> Iterable[Markup]:
    per_second = US_PER_SECOND / group.bucket_us
    area_top = top + STRIP - STRIP_AREA
    for outline in _outlines(series, group, axis, scale):
        yield svg.curve(outline, area_top, STRIP_AREA, filled=True, class_=f"area {kind}")
    yield svg.line(0, area_top + STRIP_AREA, 1, area_top + STRIP_AREA, class_="base")
    for bucket, (messages, amount) in sorted(series.items()):
        start = axis.share(bucket)
        column = svg.box(start, area_top, axis.share(bucket + group.bucket_us) - start, STRIP_AREA, class_="pointer")
        words = f"{since(group.start_us)(bucket)}: {name}, {short(messages * per_second)} messages a second"
        yield svg.group(column, title=f"{words}, {size_in_bytes(amount * per_second)} a second")


def _label(name: str, series: dict[int, tuple[int, int]], top: float, per_second: float) -> Iterable[Markup]:
    total, size = (sum(amount[part] for amount in series.values()) for part in (0, 1))
    peak = max((messages for messages, _ in series.values()), default=0) * per_second
    facts = f"{count(total)} messages, {size_in_bytes(size)}, at most {short(peak)}/s"
    yield svg.text(0, top + 20, name, class_="lane-name")
    yield svg.text(1, top + 20, facts, class_="lane-facts", text_anchor="end")


def _outlines(
    series: dict[int, tuple[int, int]], group: GroupFindings, axis: Axis, scale: Axis
) -> list[list[tuple[float, float]]]:
    """The outlines of rows of columns that stand side by side; a stretch without traffic parts two rows."""
    rows: list[list[tuple[float, float]]] = []
    expected = None
    for bucket, (messages, _) in sorted(series.items()):
        left, right = axis.share(bucket), axis.share(bucket + group.bucket_us)
        height = scale.share(messages * US_PER_SECOND / group.bucket_us)
        if bucket != expected:
            rows.append([(left, 0.0)])
        rows[-1].extend(((left, height), (right, height)))
        expected = bucket + group.bucket_us
    return [[*row, (row[-1][0], 0.0)] for row in rows]


def _throughput_description(group: GroupFindings, highest: float) -> str:
    return (
        f"Messages per second over time in group {group.name}: what all members sent, and what each of "
        f"{count(len(group.names))} members delivered. The highest column is {short(highest)} messages a second."
    )
