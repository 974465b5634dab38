"""The report from records on: what is gathered in Spark, how much of it, and the file that is written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.report import gather, nearby, write_report
from pygroups.pipeline.report.findings import Findings
from pygroups.pipeline.report.nearby import diagrams
from pygroups.pipeline.report.render import page_of
from pygroups.pipeline.verdict import AuditResult, Verdict, Violation
from tests.pipeline.html_page import reaches_out, read
from tests.pipeline.measure_rows import MS, SECOND, WALL, Diary, table
from tests.pipeline.report_story import END_US, GROUP, KILLED_US, Story, badly, held, well

pytest_plugins = ["tests.pipeline.spark_session"]
pytestmark = pytest.mark.slow
ENOUGH_BYTES = 1_000_000
CROWD = 60


@pytest.fixture(scope="module")
def story() -> Story:
    return Story(step_us=100 * MS)


@pytest.fixture(scope="module")
def audit(spark: SparkSession, story: Story) -> AuditResult:
    """The story, beside it a group of many members, ten of them cut off, and a group of one that talks to itself."""
    audit = badly(spark, story, *_crowd(), _alone())
    audit.verdicts.append(Verdict("fifo", "crowd", "held", 7, 0, ""))
    audit.groups += ["crowd", "alone"]
    return audit


def _crowd() -> list[Diary]:
    diaries = [Diary(f"m{number:03}", group="crowd") for number in range(CROWD)]
    for number, diary in enumerate(diaries):
        diary.view(number, 1, diaries)
        diary.send(SECOND + number, first=1)
        if number < CROWD - 10:
            diary.view(2 * SECOND, 2, diaries[: CROWD - 10])
    return diaries


def _alone() -> Diary:
    diary = Diary("hermit", group="alone", host="h2")
    diary.send(0, first=1, count=2)
    diary.deliver(3 * MS, diary, first=1, count=2)
    return diary


@pytest.fixture(scope="module")
def gathered(audit: AuditResult) -> Findings:
    return gather.findings_of(audit)


@pytest.fixture(scope="module")
def page(audit: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "new folder" / "report.html"
    write_report(path, audit)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_the_story_is_told_in_numbers(gathered: Findings, story: Story) -> None:
    group = gathered.groups[0]
    total = group.overview
    assert (total.group, total.names, total.lives, total.crashes, total.returns) == (GROUP, 4, 5, 1, 1)
    assert total.messages_sent == story.messages
    assert (total.start_us, total.end_us) == (WALL, WALL + END_US)
    assert [(life.address, life.ending) for life in group.lives][0::4] == [
        ("austin@austin1", "cut off"),
        ("austin@a2", "stopped"),
    ]


def test_marks_changes_and_gaps_are_gathered(gathered: Findings) -> None:
    group = gathered.groups[0]
    assert [(mark.kind, mark.mark_us - WALL) for mark in group.marks] == [
        ("fault", KILLED_US),
        ("quiet", END_US - 500 * MS),
    ]
    assert [change.view_number for change in group.changes] == [1, 2, 3, 4, 5]
    assert sorted(gap.member for gap in group.gaps) == ["boston", "chicago", "denver"]
    assert all(100 * MS < gap.gap_us < 400 * MS for gap in group.gaps)


def test_series_cover_the_whole_time_in_few_stretches(gathered: Findings, story: Story) -> None:
    group = gathered.groups[0]
    assert sum(point.sent_messages for point in group.sent) == story.messages
    assert len(group.sent) <= gather.STRETCHES and len(group.latency) <= gather.STRETCHES
    deliveries = sum(point.delivered_messages for point in group.traffic)
    assert deliveries == group.overview.messages_delivered == sum(point.messages for point in group.latency)


def test_retransmissions_and_drops_are_gathered(gathered: Findings) -> None:
    group = gathered.groups[0]
    assert {(row.member, row.requests, row.repeats) for row in group.retransmissions} == {
        ("boston", 1, 0),
        ("chicago", 0, 1),
    }
    assert {(drop.member, drop.reason, drop.times) for drop in group.drops} == {
        (name, "old view", 1) for name in ("boston", "chicago", "denver")
    }


def test_a_diagram_holds_the_run_that_the_witness_names(gathered: Findings) -> None:
    order = next(diagram for diagram in gathered.diagrams if diagram.violation.promise == "total-order")
    witness = order.violation
    assert witness.first is not None and witness.position is not None
    named = [
        event for event in order.events if event.first == witness.first and f"{event.origin}@" in f"{witness.origin}"
    ]
    assert {event.kind for event in named} == {"send", "deliver"}
    assert len(order.events) <= 2 * nearby.EVENTS_SHOWN


def test_violations_of_one_kind_share_a_diagram(gathered: Findings) -> None:
    assert sorted(diagram.violation.promise for diagram in gathered.diagrams) == ["fifo", "total-order"]


def test_the_send_of_what_is_near_only_by_position_is_fetched(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for diary in (a, b):
        diary.view(0, 1, [a, b])
    a.send(10, first=900, count=3)
    b.deliver(20, a, first=900, count=3, position=7)
    b.send(30, first=1)
    a.deliver(40, b, first=1, position=5_000)
    witness = Violation("total-order", "g", "1:A@a1", b.address, None, None, None, 8, "")
    (found,) = diagrams(table(spark, a, b), [Verdict("total-order", "g", "broken", 1, 0, "", [witness])])
    assert sorted((event.kind, event.member, event.first) for event in found.events) == [
        ("deliver", "B", 900),
        ("send", "A", 900),
    ]


def test_no_violation_or_one_without_a_place_needs_no_diagram(spark: SparkSession) -> None:
    nowhere = Violation("view-agreement", "g", "1:A@a1", "A@a1", "B@b1", None, None, None, "lists differ")
    broken = Verdict("view-agreement", "g", "broken", 1, 0, "", [nowhere])
    assert diagrams(table(spark), [broken, held("fifo")]) == []


def test_however_many_members_few_are_drawn(gathered: Findings) -> None:
    group = gathered.groups[1]
    assert group.name == "crowd" and len(group.names) == gather.NAMES_SHOWN
    cut_off = {f"m{number:03}" for number in range(CROWD - 10, CROWD)}
    assert cut_off < set(group.names)  # they come before those without trouble
    assert group.left_out["lives"] == CROWD - gather.NAMES_SHOWN
    assert {point.member for point in group.traffic} == set(group.names)
    assert sum(point.sent_messages for point in group.sent) == CROWD


def test_groups_are_kept_apart(gathered: Findings) -> None:
    group = gathered.groups[2]
    assert (group.name, group.names, group.marks, group.gaps) == ("alone", ["hermit"], [], [])
    assert [(one.scope, one.messages, one.p50_us) for one in group.latency] == [("stretch", 2, 3 * MS)]
    assert [(one.sender, one.max_us) for one in group.senders] == [("hermit", 3 * MS)]


def test_an_audit_without_records_gives_a_report(spark: SparkSession, tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", AuditResult([], [], 0, 0, [], table(spark), spark))
    assert "no promise could be judged" in (tmp_path / "report.html").read_text()


def _queries_of(spark: SparkSession, audit: AuditResult) -> int:
    """How many times the report asks Spark."""
    bus, store = spark._jsc.sc().listenerBus(), spark._jsparkSession.sharedState().statusStore()
    bus.waitUntilEmpty()
    before = store.executionsCount()
    gather.findings_of(audit)
    bus.waitUntilEmpty()
    return int(store.executionsCount() - before)


def test_two_queries_fetch_all_measures_and_three_the_diagrams(
    spark: SparkSession, story: Story, audit: AuditResult
) -> None:
    assert _queries_of(spark, well(spark, story)) == 2
    assert _queries_of(spark, audit) == 5


def test_every_group_has_its_part(page: str) -> None:
    parts = read(page).all("section", "group")
    assert [part.one("h2").text for part in parts] == [f"Group {name}" for name in (GROUP, "crowd", "alone")]


def test_the_same_records_give_the_same_page(page: str, gathered: Findings) -> None:
    assert page_of(gathered) == page


def test_the_written_page_is_small_and_complete_in_itself(page: str) -> None:
    assert len(page.encode()) < ENOUGH_BYTES
    assert reaches_out(page) == []


def test_the_written_page_tells_the_story(page: str, story: Story) -> None:
    shown = read(page)
    assert shown.one("h1").text == (
        f"{4 + CROWD + 1} members in {5 + CROWD + 1} incarnations, {story.messages + CROWD + 2:,} messages, "
        "11 crashes: "
        "2 of 8 promises that were judged were broken (fifo, total-order)."
    )
    marks = [item.text for item in shown.one("ol", "marks").all("li")]
    assert marks == ["1 4.2 s fault: kill (austin@austin1)", "2 11.5 s all should have settled"]
    lanes = [name.text for name in shown.all("svg", "timeline")[0].all("text", "lane-name")]
    assert lanes == ["austin", "boston", "chicago", "denver"]
    assert len(shown.all("svg", "timeline")[0].all("text", "returned")) == 1
    assert len(shown.all("svg", "spacetime")) == 2
