"""A timeline of incarnations and views: one lane per name, each incarnation a bar that is divided into its views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from pygroups.pipeline.report.figures import svg
from pygroups.pipeline.report.figures.scale import Axis, counted, since, time_axis
from pygroups.pipeline.report.findings import FaultMark, GroupFindings, Life, ViewSpan

TOP = 26
LANE = 46
BAR_TOP = 19
BAR = 16
AXIS = 30
LABEL_NEEDS = 0.035
LONGEST_NAME = 24
MARK_HEIGHT = 18
MARK_LETTER = 6
MARKS_APART = 0.025
ROOM_FOR_WORDS = 0.14
Words = Callable[[float], str]


def timeline(group: GroupFindings) -> Markup:
    """The figure, with a numbered line at each mark of a fault, a healing or quiet."""
    axis = time_axis(group.start_us, group.end_us)
    words = since(group.start_us)
    bottom = TOP + LANE * len(group.names)
    lanes = [_lane(group, name, TOP + LANE * row, axis, words) for row, name in enumerate(group.names)]
    names = (_name(name, TOP + LANE * row) for row, name in enumerate(group.names))
    shapes = [*time_grid(axis, words, TOP, bottom), *lanes, *mark_lines(group.marks, axis, words, TOP, bottom), *names]
    return svg.picture(shapes, bottom + AXIS, _description(group, words), "timeline")


def _description(group: GroupFindings, words: Words) -> str:
    crashes = counted(group.overview.crashes, "crash", "crashes")
    return (
        f"Timeline of group {group.name}: {counted(group.overview.names, 'member')}, "
        f"{counted(group.overview.lives, 'incarnation')}, {crashes}, over {words(group.end_us)}. "
        "The table below the figure says the same."
    )


def time_grid(axis: Axis, words: Words, top: float, bottom: float) -> Iterable[Markup]:
    """The lines and labels of an axis of time; the outer labels stay inside the figure."""
    for index, tick in enumerate(axis.ticks):
        share = axis.share(tick)
        css_class = "tick minor" if index % 2 else "tick"
        anchor = "start" if share < 0.02 else "end" if share > 0.98 else "middle"
        yield svg.line(share, top, share, bottom, class_="grid")
        yield svg.text(share, bottom + 18, words(tick), class_=css_class, text_anchor=anchor)


def mark_lines(marks: Sequence[FaultMark], axis: Axis, words: Words, top: float, bottom: float) -> Iterable[Markup]:
    """A line for each mark, with the number under which the list below the timeline explains it.

    Marks whose numbers would cover each other share one: `4–6`.
    """
    for together in _close(marks, axis):
        shares = [axis.share(mark.mark_us) for _, mark in together]
        first, last = together[0][0], together[-1][0]
        label = str(first) if first == last else f"{first}–{last}"
        width = MARK_HEIGHT + MARK_LETTER * (len(label) - 1)
        explained = (f"{number}: {mark_in_words(mark)} at {words(mark.mark_us)}" for number, mark in together)
        yield svg.group(
            *(svg.line(share, top, share, bottom, class_="mark-line") for share in shares),
            svg.pill(shares[0], top - 20, width, MARK_HEIGHT, class_="mark-dot"),
            svg.text(shares[0], top - 7, label, class_="mark-number", text_anchor="middle"),
            title="; ".join(explained),
            class_=f"mark mark-{together[0][1].kind}",
        )


def _close(marks: Sequence[FaultMark], axis: Axis) -> list[list[tuple[int, FaultMark]]]:
    """Marks with their numbers, in groups: marks of one kind that stand close to each other form one group."""
    groups: list[list[tuple[int, FaultMark]]] = []
    for number, mark in enumerate(marks, start=1):
        before = groups[-1][0][1] if groups else None
        if before and before.kind == mark.kind and axis.share(mark.mark_us) - axis.share(before.mark_us) < MARKS_APART:
            groups[-1].append((number, mark))
        else:
            groups.append([(number, mark)])
    return groups


def mark_in_words(mark: FaultMark) -> str:
    """The text of a mark: its kind, its reason and the members that it names."""
    kinds = {"fault": "fault", "heal": "the last fault is over", "quiet": "all should have settled"}
    reason = f": {mark.reason}" if mark.reason else ""
    named = f" ({', '.join(mark.named)})" if mark.named else ""
    return kinds[mark.kind] + reason + named


def life_in_words(life: Life, words: Words) -> str:
    """The course of an incarnation in words: `joined at 2.1 s, cut off at 4.2 s`."""
    endings = {
        "stopped": f"stopped at {words(life.to_us)} ({life.stop_reason})",
        "cut off": f"cut off at {words(life.to_us)}",
        "open": f"last record at {words(life.to_us)}",
    }
    return f"from {words(life.from_us)}, {endings[life.ending]}"


def _lane(group: GroupFindings, name: str, top: float, axis: Axis, words: Words) -> Markup:
    lives = [life for life in group.lives if life.member == name]
    return svg.group(*(_life(group, life, top + BAR_TOP, axis, words) for life in lives), class_="lane")


def _name(name: str, top: float) -> Markup:
    shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return svg.group(svg.text(0, top + 12, shown, class_="lane-name"), title=name)


def _life(group: GroupFindings, life: Life, top: float, axis: Axis, words: Words) -> Markup:
    start, end = axis.share(life.from_us), axis.share(life.to_us)
    mine = [view for view in group.views if (view.member, view.incarnation) == (life.member, life.incarnation)]
    bar = svg.group(
        svg.box(start, top, max(end - start, 0.002), BAR, class_="life"),
        title=f"{life.address} {life_in_words(life, words)}",
    )
    return svg.group(
        bar,
        *(_view(view, top, axis, words) for view in mine),
        *(_return(start, top) if life.life > 1 else ()),
        *_ending(life, start, end, top),
    )


def _view(view: ViewSpan, top: float, axis: Axis, words: Words) -> Markup:
    start, end = axis.share(view.from_us), axis.share(view.to_us)
    shade = "odd" if view.view_number % 2 else "even"
    kind = " minority" if view.primary is False else ""
    shapes = [svg.box(start, top, end - start, BAR, class_=f"view {shade}{kind}")]
    if end - start >= LABEL_NEEDS:
        label = str(view.view_number)
        shapes.append(svg.text((start + end) / 2, top + 12, label, class_="view-number", text_anchor="middle"))
    merged = ", a merge" if view.merged else ""
    title = (
        f"{view.member} in view {view.view_number} of {view.view_creator}{merged}, "
        f"{words(view.from_us)} to {words(view.to_us)}, with {', '.join(view.members)}"
    )
    return svg.group(*shapes, title=title)


def _return(start: float, top: float) -> Iterable[Markup]:
    yield svg.text(start, top - 4, "▸ back", class_="returned")


def _ending(life: Life, start: float, end: float, top: float) -> Iterable[Markup]:
    if life.ending == "cut off":
        anchor = "end" if end > 0.85 else "start"
        cramped = anchor == "end" and end - start < ROOM_FOR_WORDS
        yield svg.line(end, top - 2, end, top + BAR + 2, class_="cut")
        yield svg.text(end, top - 4, "✕" if cramped else "✕ cut off", class_="cut-word", text_anchor=anchor)
    elif life.ending == "stopped":
        yield svg.group(
            svg.line(end, top - 2, end, top + BAR + 2, class_="stopped"), title=f"stopped: {life.stop_reason}"
        )
