"""The report without Spark: the words, the figures and the page, from findings made by hand."""

import base64
import dataclasses
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygroups.layers.profiles import PROFILES
from pygroups.pipeline.promises import RULES, WITHOUT_RULE, unjudged
from pygroups.pipeline.report import words
from pygroups.pipeline.report.figures import scale, svg
from pygroups.pipeline.report.figures.series import latency, throughput
from pygroups.pipeline.report.figures.spacetime import spacetime
from pygroups.pipeline.report.figures.timeline import timeline
from pygroups.pipeline.report.findings import (
    Diagram,
    FailoverGap,
    FaultMark,
    Findings,
    GroupFindings,
    Latency,
    Life,
    NearbyRecord,
    Overview,
    Traffic,
    ViewSpan,
)
from pygroups.pipeline.report.gather import STRETCHES, stretch_us
from pygroups.pipeline.report.render import VIOLATIONS_SHOWN, page_of
from pygroups.pipeline.verdict import AuditStep, Quarantined, Verdict, Violation, Word, Work
from tests.pipeline.html_page import Element, reaches_out, read

START = 1_700_000_000_000_000
SECOND = 1_000_000
MS = 1_000
HOSTILE = "</title><script>alert('x')</script><img src=https://example.org/x.png>\"'&"


def life(member: str, number: int, from_us: int, to_us: int, ending: str = "stopped") -> Life:
    incarnation = f"{member.lower()}{number}"
    times = (START + from_us, START + to_us)
    reason = "left" if ending == "stopped" else None
    return Life(member, incarnation, "total", number, *times, ending, reason, 10, 20, 1_000)


def group(**changes: object) -> GroupFindings:
    lives = [
        life("A", 1, 0, 4 * SECOND, "cut off"),
        life("B", 1, 0, 10 * SECOND),
        life("A", 2, 7 * SECOND, 10 * SECOND, "open"),
    ]
    total = Overview("orders", 2, 3, 1, 1, 1_234, 2_468, 99_000, ["total"], ["send"], 1, START, START + 10 * SECOND)
    both = ["A@a1", "B@b1"]
    shown = GroupFindings(
        overview=total,
        bucket_us=SECOND,
        lives=lives,
        views=[
            ViewSpan("A", "a1", 1, "A@a1", both, True, False, START, START + 4 * SECOND),
            ViewSpan("B", "b1", 1, "A@a1", both, True, False, START, START + 5 * SECOND),
            ViewSpan("B", "b1", 2, "B@b1", ["B@b1"], False, False, START + 5 * SECOND, START + 10 * SECOND),
        ],
        marks=[
            FaultMark(START + 4 * SECOND, "fault", "kill", ["A@a1"]),
            FaultMark(START + 9 * SECOND, "quiet", "", []),
        ],
        latency=[Latency("stretch", START + n * SECOND, "", 50, 1e3, 2e3, 3e3 * (n + 1), 9_000) for n in (0, 1, 2, 7)],
        latency_of_all=Latency("all", 0, "", 200, 1e3, 2e3, 2.4e4, 99_000),
        sent=[Traffic(None, START + n * SECOND, 0, 0, 100, 9_000) for n in range(4)],
        traffic=[Traffic("A", START + n * SECOND, 100, 9_000, 50, 4_500) for n in (0, 1, 7)],
        gaps=[FailoverGap("B", "b1", START + 4 * SECOND, "kill", ["A@a1"], 180 * MS)],
    )
    return dataclasses.replace(shown, **changes)  # type: ignore[arg-type]


def verdict(promise: str, word: Word = "held", **changes: object) -> Verdict:
    judged = 0 if word == "not judged" else 100
    return dataclasses.replace(Verdict(promise, "orders", word, judged, 0, ""), **changes)  # type: ignore[arg-type]


def violation(detail: str = "two members differ", first: int | None = 5) -> Violation:
    return Violation("fifo", "orders", "1:A@a1", "B@b1", "A@a1", "A@a1", first, 3, detail)


def findings(*verdicts: Verdict, **changes: object) -> Findings:
    shown = group()
    whole = Findings(list(verdicts), list(verdicts), [shown], [shown.overview], files=3, rows=4_000)
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def page(*verdicts: Verdict, **changes: object) -> Element:
    return read(page_of(findings(*verdicts, **changes)))


# Words


def test_the_sentence_at_the_top_says_who_took_part_and_what_was_found() -> None:
    outcome = words.outcome([("a", "held")] * 13 + [("b", "not judged")])
    assert words.headline(5, 5, 22_355, 1, outcome) == (
        "5 members, 22,355 messages, 1 crash: all 13 promises that were judged held."
    )


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ({"fifo": "broken", "integrity": "held"}, "1 of 2 promises that were judged was broken (fifo)"),
        (dict.fromkeys("abcde", "broken"), "5 of 5 promises that were judged were broken (a, b, c and 2 more)"),
        ({"fifo": "held", "liveness": "not judged"}, "the one promise that was judged held"),
        ({"fifo": "not judged"}, "no promise could be judged"),
        ({}, "no promise could be judged"),
    ],
)
def test_what_was_found_is_one_clause(verdicts: dict[str, str], outcome: str) -> None:
    assert words.outcome(list(verdicts.items())) == outcome


def test_a_restart_shows_as_a_life_more_than_members() -> None:
    assert words.headline(4, 5, 10, 2, "x") == "4 members in 5 incarnations, 10 messages, 2 crashes: x."


def test_every_promise_has_a_plain_sentence_and_a_rule_or_is_known_to_have_none() -> None:
    assert [*words.PROMISES] == sorted([*(rule.promise for rule in RULES), *WITHOUT_RULE], key=[*words.PROMISES].index)


def test_promises_without_a_rule_are_named_by_the_profiles_that_make_them() -> None:
    missing = {name: unjudged([profile.services]) for name, profile in PROFILES.items()}
    assert missing["fifo"] == missing["uniform-fifo"] == missing["unicast"] == []
    assert missing["total"] == missing["uniform"] == ["causal"]
    assert missing["gossip"] == []


def test_the_page_says_which_promises_no_rule_judged() -> None:
    held = Verdict("fifo", "orders", "held", 5, 0, "")
    told = page_of(findings(held, unjudged=["causal"]))
    assert "1 more promise of this profile, not judged, because no rule is built yet" in told
    assert "<li>causal: An answer never arrives before the question.</li>" in told
    assert "no rule is there yet" not in page_of(findings(held))


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        (0, "0 µs"),
        (840, "840 µs"),
        (1240, "1.24 ms"),
        (1300, "1.3 ms"),
        (12345678, "12.3 s"),
        (125000000, "2 min 5 s"),
        (7200000000, "2 h"),
        (-35000, "-35 ms"),
        (59999999, "60 s"),
    ],
)
def test_a_length_of_time_is_said_in_the_unit_that_fits(microseconds: int, said: str) -> None:
    assert scale.duration(microseconds) == said


def test_columns_of_lengths_keep_their_zeros() -> None:
    assert [scale.duration(length, padded=True) for length in (1_300, 13_000, 5)] == ["1.30 ms", "13.0 ms", "5 µs"]


# Axes


@given(st.integers(0, 10**13))
def test_an_axis_of_time_has_a_handful_of_ticks_on_it(span_us: int) -> None:
    axis = scale.time_axis(START, START + span_us)
    assert 1 <= len(axis.ticks) <= 7
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)


@given(st.lists(st.floats(1e-1, 1e9), min_size=1))
def test_a_logarithmic_axis_holds_every_value(values: list[float]) -> None:
    axis = scale.log_axis(values)
    assert axis.low <= min(values) and max(values) <= axis.high
    assert 2 <= len(axis.ticks) <= 12
    assert axis.share(axis.low) == 0 and axis.share(axis.high) == pytest.approx(1)


@given(st.integers(0, 10**14))
def test_series_never_have_more_stretches_than_allowed(span_us: int) -> None:
    stretch = stretch_us(START, START + span_us)
    first, last = START // stretch, (START + span_us) // stretch
    assert last - first + 1 <= STRETCHES


# Figures


def test_words_in_figures_are_escaped() -> None:
    drawn = svg.group(svg.text(0, 0, HOSTILE, class_=HOSTILE), title=HOSTILE)
    assert "<script" not in drawn and "<img" not in drawn
    assert read(drawn).one("text").attributes["class"] == HOSTILE


def test_the_timeline_shows_lives_views_and_marks() -> None:
    drawn = read(timeline(group()))
    assert [name.text for name in drawn.all("text", "lane-name")] == ["A", "B"]
    assert len(drawn.all("rect", "life")) == 3
    assert len(drawn.all("rect", "minority")) == 1
    assert len(drawn.all("text", "cut-word")) == 1 and len(drawn.all("text", "returned")) == 1
    assert [mark.one("text").text for mark in drawn.all("g", "mark")] == ["1", "2"]
    assert drawn.all("g", "mark")[0].one("title").text == "1: fault: kill (A@a1) at 4 s"


def test_a_life_stands_where_it_was_lived() -> None:
    bars = read(timeline(group())).all("rect", "life")
    assert [(bar.attributes["x"], bar.attributes["width"]) for bar in bars] == [
        ("0.000%", "40.000%"),
        ("70.000%", "30.000%"),
        ("0.000%", "100.000%"),
    ]


def test_marks_that_stand_close_share_a_number() -> None:
    times = (1 * SECOND, 1_010 * MS, 1_020 * MS, 5 * SECOND)
    marks = [FaultMark(START + at_us, "fault", f"number {at_us}", []) for at_us in times]
    drawn = read(timeline(group(marks=marks))).all("g", "mark")
    assert [mark.one("text").text for mark in drawn] == ["1–3", "4"]
    assert [len(mark.all("line")) for mark in drawn] == [3, 1]
    assert drawn[0].one("title").text.count("number") == 3


@pytest.mark.parametrize(
    ("reason", "said"),
    [("kill", "kill (A)"), ("A is killed", "A is killed"), ("", "fault (A)"), ("Alpha sleeps", "Alpha sleeps (A)")],
)
def test_a_fault_says_whom_it_hit_once(reason: str, said: str) -> None:
    gaps = [FailoverGap("B", "b1", START + 4 * SECOND, reason, ["A@a1"], MS)]
    assert f"{said} at 4 s B 1.00 ms" in page(verdict("fifo"), groups=[group(gaps=gaps)]).one("main").text


def test_a_long_table_shows_the_longest_first_and_all_on_demand() -> None:
    gaps = [FailoverGap(f"m{n:02}", "1", START, "kill", [], (n + 1) * MS) for n in range(20)]
    text = page(verdict("fifo"), groups=[group(gaps=gaps)]).one("section", "group").text
    assert "The 12 longest:" in text
    assert text.count("m00") == 1 and text.count("m19") == 2 and text.index("m19") < text.index("m00")


def test_the_line_of_latency_breaks_where_nothing_was_delivered() -> None:
    drawn = read(latency(group()))
    assert len(drawn.all("path", "half")) == 1  # the first three stretches are joined
    assert len(drawn.all("circle", "half")) == 1  # the eighth stands alone
    assert len(drawn.all("rect", "pointer")) == 4


def test_a_column_of_throughput_falls_to_zero_where_nothing_went_through() -> None:
    drawn = read(throughput(group()))
    assert [strip.text for strip in drawn.all("text", "lane-name")] == ["sent by all", "A", "B"]
    assert len(drawn.all("path", "sent")) == 1
    assert len(drawn.all("path", "delivered")) == 2  # A delivers in two pieces, B nothing


def _event(
    kind: str, member: str, time_us: int, first: int = 5, count: int = 1, position: int | None = None
) -> NearbyRecord:
    return NearbyRecord(kind, member, f"{member.lower()}1", time_us, time_us, "A", "a1", first, count, position, None)


def test_a_space_time_diagram_has_an_arrow_from_each_send_to_where_it_was_delivered() -> None:
    events = [
        _event("send", "A", 1),
        _event("deliver", "A", 2, position=3),
        _event("deliver", "B", 3, position=3),
        _event("deliver", "C", 4, position=3),
        _event("send", "A", 5, first=6, count=4),
        _event("deliver", "B", 6, first=6, count=4, position=4),
    ]
    drawn = read(spacetime(Diagram(violation(), events)))
    assert len(drawn.all("line", "strong")) == 2  # to B and to C; what a member delivers to itself has no arrow
    assert len(drawn.all("line", "faint")) == 1
    assert [lane.text for lane in drawn.all("text", "lane-name")] == ["A@a1", "B@b1", "C@c1"]
    assert len(drawn.all("circle", "concerned")) == 4
    titles = [title.text for title in drawn.all("title")]
    assert "B@b1 delivers A:6–9 at position 4" in titles


def test_every_figure_says_in_words_what_is_to_be_seen() -> None:
    events = [_event("send", "A", 1), _event("deliver", "B", 2, position=3)]
    broken = verdict("fifo", "broken", violations=[violation()], broken=1)
    shown = findings(broken, diagrams=[Diagram(broken.violations[0], events)])
    drawn = read(page_of(shown)).all("svg", "figure")
    assert len(drawn) == 4
    assert all(len(one.attributes["aria-label"]) > 40 and one.attributes["role"] == "img" for one in drawn)


# The page


def test_what_is_broken_comes_first_and_says_so_in_words() -> None:
    verdicts = [
        verdict("integrity"),
        verdict("liveness", "not judged", reason="no marks"),
        verdict("merge-agreement", "not judged", excused=True, reason="no merge"),
        verdict("fifo", "broken", violations=[violation()], broken=1),
    ]
    shown = page(*verdicts)
    rows = shown.one("table", "verdicts").all("td", "word")
    assert [row.text for row in rows] == ["✕ broken", "? not judged", "✓ held", "– not judged"]
    assert shown.one("h1").text.endswith("1 of 2 promises that were judged was broken (fifo).")
    assert "broken" in shown.one("header").attributes["class"]


def test_a_verdict_shows_its_counts_its_meaning_and_its_reason() -> None:
    shown = page(verdict("fifo", judged=12_345, skipped=67, reason="a journal has a hole"))
    name, judged, skipped = shown.one("table", "verdicts").all("tr")[-1].inside[3::2]
    assert isinstance(name, Element) and isinstance(judged, Element) and isinstance(skipped, Element)
    assert name.text == f"fifo {words.meaning('fifo')} a journal has a hole"
    assert (judged.text, skipped.text) == ("12,345", "67")


def test_no_more_violations_are_listed_than_allowed_and_the_rest_is_counted() -> None:
    many = [violation(f"number {n}", first=n) for n in range(80)]
    shown = page(verdict("fifo", "broken", violations=many, broken=1_080))
    assert len(shown.all("article", "violation")) + len(shown.all("tr", "listed")) == VIOLATIONS_SHOWN
    assert "1,030 more violations of this promise not listed." in shown.one("main").text


def test_the_witness_is_shown_with_its_place() -> None:
    shown = page(verdict("fifo", "broken", violations=[violation("message 5 came twice")], broken=1))
    panel = shown.one("article", "violation")
    assert panel.text.startswith("message 5 came twice")
    named = dict(zip((dt.text for dt in panel.all("dt")), (dd.text for dd in panel.all("dd")), strict=True))
    assert named == {
        "group": "orders",
        "view": "1:A@a1",
        "at member": "B@b1",
        "compared with": "A@a1",
        "sent by": "A@a1",
        "message number": "5",
        "position in the view": "3",
    }


def test_quarantined_places_are_named() -> None:
    shown = page(verdict("fifo"), quarantined=[Quarantined("orders/A@a1/000000.journal", 4_096, "torn frame")])
    (table,) = [table for table in shown.all("table") if table.attributes.get("id") == "quarantine"]
    assert table.all("tr")[1].text == "orders/A@a1/000000.journal 4,096 torn frame"
    assert "1 place could not be read" in shown.one("main").text


def test_the_page_says_what_the_audit_did() -> None:
    steps = [AuditStep("starting Spark", 4.2, 9.6), AuditStep("judging 24 promises", 11.8, 20.4)]
    shown = page(verdict("fifo"), work=Work(files=5, bytes=5_956_914, rows=52_816, skipped=3, steps=steps))
    text = shown.one("main").text
    assert "The audit read 5.96 MB of 5 files with 52,816 records; 3 ranges of bytes were in the table already" in text
    assert "Until this page the audit took 16.0 s, and 30.0 s of CPU time." in text
    (table,) = [table for table in shown.all("table") if table.attributes.get("id") == "steps"]
    assert [row.text for row in table.all("tr")[1:]] == [
        "starting Spark 4.20 s 9.60 s",
        "judging 24 promises 11.8 s 20.4 s",
    ]


def test_a_page_without_a_word_on_the_work_has_no_table_of_steps() -> None:
    assert "The work of the audit" not in page(verdict("fifo")).one("main").text


def test_an_audit_of_nothing_is_still_a_page() -> None:
    shown = page(groups=[], totals=[], files=0, rows=0)
    assert shown.one("h1").text == "0 members, 0 messages: no promise could be judged."


def test_a_group_in_which_nothing_was_sent_is_still_a_page() -> None:
    empty = group(latency=[], latency_of_all=None, sent=[], traffic=[], gaps=[], marks=[], views=[])
    shown = page(verdict("fifo", "not judged"), groups=[empty])
    assert "No message was sent, and no message was delivered." in shown.one("main").text


def test_the_page_loads_nothing_from_anywhere() -> None:
    text = page_of(findings(verdict("fifo", "broken", violations=[violation()], broken=1)))
    assert reaches_out(text) == []
    assert "http:" not in text and "https:" not in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


@pytest.mark.parametrize(
    "planted",
    [
        "<img src='https://example.org/x'>",
        "<a href='//example.org'></a>",
        "<style>p{background:url(x.png)}</style>",
        "<style>@import 'x.css';</style>",
        "<script src='x.js'></script>",
        "<link href='x.css'>",
    ],
)
def test_the_check_for_loads_sees_a_planted_one(planted: str) -> None:
    assert reaches_out(f"<p>{planted}</p>") != []


def test_whatever_a_journal_holds_is_shown_and_never_run() -> None:
    broken = verdict("fifo", "broken", violations=[violation(HOSTILE)], broken=1, reason=HOSTILE)
    hostile = group(marks=[FaultMark(START, "fault", HOSTILE, [HOSTILE])])
    damage = [Quarantined(HOSTILE, 1, HOSTILE)]
    text = page_of(findings(broken, groups=[hostile], quarantined=damage))
    shown = read(text)
    (script,) = shown.all("script")
    allowed = base64.b64encode(hashlib.sha256("".join(map(str, script.inside)).encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in shown.one("html").all("meta")[2].attributes["content"]
    assert shown.all("img") == []
    assert re.sub(r"\s+", " ", HOSTILE) in shown.one("article", "violation").text


def test_the_same_findings_give_the_same_page() -> None:
    assert page_of(findings(verdict("fifo"))) == page_of(findings(verdict("fifo")))
