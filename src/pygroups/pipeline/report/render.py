"""From findings to the page: figures are drawn, numbers become words, the template puts them in their places."""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from collections.abc import Callable, Container, Iterator, Sequence
from importlib import resources
from typing import Any, Final

import jinja2
from markupsafe import Markup

from pygroups.pipeline.report import words
from pygroups.pipeline.report.figures import scale, series
from pygroups.pipeline.report.figures.spacetime import spacetime
from pygroups.pipeline.report.figures.timeline import life_in_words, mark_in_words, timeline
from pygroups.pipeline.report.findings import FailoverGap, Findings, GroupFindings, Life, Overview, SizeClass
from pygroups.pipeline.verdict import Verdict, Violation

VIOLATIONS_SHOWN: Final = 50
IN_FULL: Final = 3
LONGEST_SHOWN: Final = 12
ROWS_SHOWN: Final = 200
MEMBERS_NAMED: Final = 8
SIGN: Final = {"held": "✓", "broken": "✕", "not judged": "?"}
PACKAGE: Final = "pygroups.pipeline.report"


def page_of(findings: Findings) -> str:
    """The whole page as text."""
    environment = _environment(findings)
    verdicts = [(verdict.promise, verdict.verdict) for verdict in findings.summary]
    script = _template_text("report.js")
    return environment.get_template("report.html.jinja").render(
        findings=findings,
        headline=_headline(findings.totals, verdicts),
        state=words.state_of(verdicts),
        sign=SIGN,
        facts=list(_facts(findings)),
        chapters=list(_chapters(findings.summary)),
        broken=[verdict for verdict in findings.summary if verdict.verdict == "broken"],
        drawn=[_figures(group) for group in findings.groups],
        rows_shown=ROWS_SHOWN,
        style=Markup(_template_text("report.css")),
        script=Markup(script),
        script_hash=_source_hash(script),
    )


def _template_text(name: str) -> str:
    return resources.files(PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    """The hash of `script`, the only script that the page's policy allows: a script from a journal cannot run."""
    digest = hashlib.sha256(script.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _environment(findings: Findings) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawn = {id(diagram.violation): spacetime(diagram) for diagram in findings.diagrams}
    environment.filters.update(_filters())
    environment.filters["diagram_of"] = lambda violation: drawn.get(id(violation))
    environment.filters["split"] = lambda verdict: _in_full_and_in_brief(verdict, drawn)
    return environment


def _filters() -> dict[str, Callable[..., Any]]:
    return {
        "after": lambda moment, group: scale.since(group.start_us)(moment),
        "count": scale.count,
        "counted": lambda number, noun: scale.counted(number, noun),
        "duration": lambda length: scale.duration(length, padded=True),
        "fault_in_words": _fault_in_words,
        "latency_in_words": _latency_in_words,
        "life_in_words": _life_in_words,
        "mark_in_words": mark_in_words,
        "meaning": words.meaning,
        "moment": _moment,
        "names": _names,
        "overview_in_words": _overview_in_words,
        "place": lambda violation: list(_place(violation)),
        "seconds": lambda seconds: scale.duration(seconds * 1_000_000, padded=True),
        "significant": scale.significant,
        "span": scale.duration,
        "size_class": _size_class,
        "size_in_bytes": scale.size_in_bytes,
        "css": _css_class,
        "sign": lambda verdict: "–" if verdict.excused and verdict.verdict == "not judged" else SIGN[verdict.verdict],
        "verdict_css": lambda verdict: "doubt" if _in_doubt(verdict) else _css_class(verdict.verdict),
    }


def _headline(totals: Sequence[Overview], verdicts: Sequence[tuple[str, str]]) -> str:
    names, lives, crashes, messages = (
        sum(getattr(total, what) for total in totals) for what in ("names", "lives", "crashes", "messages_sent")
    )
    return words.headline(names, lives, messages, crashes, words.outcome(verdicts))


def _facts(findings: Findings) -> Iterator[tuple[str, str]]:
    """The few numbers at the top; those of speed are of the group with the most messages."""
    totals = findings.totals
    if not totals:
        return
    if len(totals) > 1:
        yield "groups", scale.count(len(totals))
    yield "messages sent", scale.count(sum(total.messages_sent for total in totals))
    yield "deliveries", scale.count(sum(total.messages_delivered for total in totals))
    yield "facts judged", scale.count(sum(verdict.judged for verdict in findings.summary))
    group = findings.groups[0]
    if group.latency_of_all:
        yield "half of the messages arrived within", scale.duration(group.latency_of_all.p50_us)
        yield "99 of 100 arrived within", scale.duration(group.latency_of_all.p99_us)
    if group.gaps:
        yield "longest pause at a fault", scale.duration(max(gap.gap_us for gap in group.gaps))


def _in_doubt(verdict: Verdict) -> bool:
    return verdict.verdict == "not judged" and not verdict.excused


def _chapters(summary: Sequence[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    """The verdicts by chapter, the most urgent chapter first; empty chapters are left out."""
    chapters = {
        "Broken": [v for v in summary if v.verdict == "broken"],
        "Promised, but could not be judged": [v for v in summary if _in_doubt(v)],
        "Held": [v for v in summary if v.verdict == "held"],
        "Not promised here, or no occasion for it": [v for v in summary if v.verdict == "not judged" and v.excused],
    }
    return ((heading, verdicts) for heading, verdicts in chapters.items() if verdicts)


def _figures(group: GroupFindings) -> dict[str, Any]:
    return {
        "timeline": timeline(group),
        "latency": series.latency(group) if group.latency else None,
        "throughput": series.throughput(group) if group.sent else None,
        "most_runs": max((size.runs for size in group.size_classes), default=1),
        "gaps": sorted(group.gaps, key=lambda gap: -gap.gap_us)[:LONGEST_SHOWN],
        "changes": sorted(group.changes, key=lambda change: -(change.flush_max_us or 0))[:LONGEST_SHOWN],
        "longest_gap_us": max([1, *(gap.gap_us for gap in group.gaps)]),
        "longest_change_us": max([1.0, *(change.flush_max_us or 0 for change in group.changes)]),
    }


def _css_class(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _moment(time_us: int) -> str:
    moment = datetime.datetime.fromtimestamp(time_us / 1_000_000, tz=datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _names(addresses: Sequence[str] | None) -> str:
    names = [address.partition("@")[0] for address in addresses or ()]
    more = len(names) - MEMBERS_NAMED
    return ", ".join(names[:MEMBERS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _overview_in_words(total: Overview) -> str:
    parts = [
        f"profile {', '.join(total.profiles)}",
        scale.counted(total.names, "member"),
        scale.counted(total.lives, "incarnation"),
        scale.size_in_bytes(total.bytes_sent) + " sent",
        scale.duration(total.end_us - total.start_us),
        f"from {_moment(total.start_us)} UTC",
    ]
    return " · ".join(parts)


def _latency_in_words(group: GroupFindings) -> str:
    total = group.latency_of_all
    if total is None:
        return ""
    return (
        f"From the moment a member sent a message to the moment each member had it, the sender too. Of "
        f"{scale.count(total.messages)} deliveries half took at most {scale.duration(total.p50_us)}, 99 of 100 at "
        f"most {scale.duration(total.p99_us)}."
    )


def _life_in_words(life: Life, group: GroupFindings) -> str:
    return life_in_words(life, scale.since(group.start_us))


def _fault_in_words(gap: FailoverGap) -> str:
    """The reason of a fault, and the affected members if the reason does not name them."""
    reason = gap.reason or "fault"
    said = set(re.findall(r"[\w.-]+", reason))
    unsaid = [address for address in gap.named if address.partition("@")[0] not in said]
    return reason + (f" ({_names(unsaid)})" if unsaid else "")


def _size_class(size: SizeClass) -> str:
    return "1" if size.at_least == 1 else f"{scale.count(size.at_least)} to {scale.count(2 * size.at_least - 1)}"


def _in_full_and_in_brief(verdict: Verdict, drawn: Container[int]) -> tuple[list[Violation], list[Violation]]:
    """The violations that get a panel of their own, the first and those with a diagram, and the others listed."""
    shown = verdict.violations[:VIOLATIONS_SHOWN]
    in_full = [one for number, one in enumerate(shown) if number < IN_FULL or id(one) in drawn]
    return in_full, [one for number, one in enumerate(shown) if number >= IN_FULL and id(one) not in drawn]


def _place(violation: Violation) -> Iterator[tuple[str, str]]:
    """The place of a violation, in the words of a reader; fields that do not apply are left out."""
    message = None if violation.first is None else f"{violation.first:,}"
    position = None if violation.position is None else f"{violation.position:,}"
    named = {
        "group": violation.group,
        "view": violation.view,
        "at member": violation.member,
        "compared with": violation.other,
        "sent by": violation.origin,
        "message number": message,
        "position in the view": position,
    }
    return ((name, value) for name, value in named.items() if value is not None)
