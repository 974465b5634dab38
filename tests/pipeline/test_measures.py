"""Each measure on a handful of records, with the numbers worked out by hand."""

import random

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.ingest.keys import life_key
from pygroups.pipeline.measures.blocked import blocked_spans, blocked_time
from pygroups.pipeline.measures.changes import view_changes, view_changes_of_group
from pygroups.pipeline.measures.failover import failover_gaps
from pygroups.pipeline.measures.kinds import by_member
from pygroups.pipeline.measures.latency import (
    TO_ALL,
    clock_difference,
    delivery_latency,
    latencies,
    latency_counts,
    latency_percentiles,
)
from pygroups.pipeline.measures.losses import drops, retransmissions
from pygroups.pipeline.measures.percentiles import rounded
from pygroups.pipeline.measures.runs import run_size_classes, run_sizes
from pygroups.pipeline.measures.tables import measures_of
from pygroups.pipeline.measures.throughput import throughput, throughput_of_group
from pygroups.pipeline.measures.timeline import lives, marks, view_spans
from pygroups.pipeline.report.findings import Life
from pygroups.pipeline.report.gather import collect
from pygroups.pipeline.report.overview import overviews
from tests.pipeline.measure_rows import MS, SECOND, WALL, Diary, rows_of, table

pytest_plugins = ["tests.pipeline.spark_session"]
pytestmark = pytest.mark.slow


def test_latency_uses_the_monotonic_clock_on_one_host(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    b.wall_ahead_us = 3 * SECOND  # the wall clock jumped; it must not show
    a.send(10 * MS, first=1, count=5)
    a.deliver(12 * MS, a, first=1, count=5)
    b.deliver(17 * MS, a, first=1, count=5)
    history = table(spark, a, b)
    found = rows_of(by_member(latencies(history), history), "member", "latency_us", "messages", "one_clock")
    assert found == [("A", 2 * MS, 5, True), ("B", 7 * MS, 5, True)]


def test_latency_between_hosts_uses_the_wall_clock_and_tells_the_difference(spark: SparkSession) -> None:
    a, b = Diary("A", host="left"), Diary("B", host="right")
    b.wall_ahead_us = 40 * MS
    a.send(10 * MS, first=1)
    b.deliver(13 * MS, a, first=1)
    b.send(20 * MS, first=1)
    a.deliver(25 * MS, b, first=1)
    history = table(spark, a, b)
    rows = latencies(history)
    assert rows_of(by_member(rows, history), "member", "latency_us") == [("A", -35 * MS), ("B", 43 * MS)]
    differences = rows_of(clock_difference(rows, history), "host", "other_host", "ahead_us", "round_trip_us")
    assert differences == [("left", "right", 39.0 * MS, 8 * MS)]


def test_clock_difference_needs_both_ways(spark: SparkSession) -> None:
    a, b = Diary("A", host="left"), Diary("B", host="right")
    a.send(10 * MS, first=1)
    b.deliver(13 * MS, a, first=1)
    history = table(spark, a, b)
    assert clock_difference(latencies(history), history).count() == 0


def test_latency_of_a_run_that_was_sent_twice_counts_once(spark: SparkSession) -> None:
    a = Diary("A")
    a.send(10 * MS, first=1)
    a.send(11 * MS, first=1)
    a.deliver(14 * MS, a, first=1)
    assert rows_of(latencies(table(spark, a)), "latency_us") == [(4 * MS,)]


def test_a_unicast_is_not_taken_for_the_multicast_of_the_same_number(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    a.send(0, first=1)
    a.send(5 * MS, first=1, peer=b.address)
    b.deliver(6 * MS, a, first=1, peer=b.address)
    b.deliver(9 * MS, a, first=1)
    assert rows_of(latencies(table(spark, a, b)), "receiver", "latency_us") == sorted(
        [(TO_ALL, 9 * MS), (life_key("g", b.address), 1 * MS)]
    )


def test_percentiles_weigh_a_run_by_its_messages(spark: SparkSession) -> None:
    a = Diary("A")
    a.send(0, first=1, count=98)
    a.deliver(1 * MS, a, first=1, count=98)
    a.send(10 * MS, first=99, count=2)
    a.deliver(110 * MS, a, first=99, count=2)
    found = rows_of(delivery_latency(table(spark, a)), "sender", "messages", "p50_us", "p90_us", "p99_us", "max_us")
    assert found == [("A", 100, 1.0 * MS, 1.0 * MS, 100.0 * MS, 100 * MS)]


def test_latency_is_kept_per_minute_of_the_delivery(spark: SparkSession) -> None:
    a = Diary("A")
    begin = 60 * SECOND - WALL % (60 * SECOND)
    for first, at_us in ((1, begin - 1), (2, begin), (3, begin + 60 * SECOND)):
        a.send(at_us, first=first)
        a.deliver(at_us, a, first=first)
    starts = [WALL + begin + minute * 60 * SECOND for minute in (-1, 0, 1)]
    assert rows_of(delivery_latency(table(spark, a)), "bucket") == [(start,) for start in starts]


def test_percentiles_stay_within_half_a_percent_of_the_exact_ones(spark: SparkSession) -> None:
    rng = random.Random(7)
    exact: list[int] = []
    rows = []
    for _ in range(2_000):
        latency, messages = int(rng.lognormvariate(8, 2)), rng.randint(1, 60)
        exact.extend([latency] * messages)
        rows.append(("g", 1, WALL, messages, latency))
    frame = spark.createDataFrame(rows, "group string, sender long, time_us long, messages long, latency_us long")
    (found,) = latency_percentiles(latency_counts(frame), ("group",)).collect()
    exact.sort()
    for name, share in (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99)):
        assert found[name] == pytest.approx(exact[int(share * (len(exact) - 1))], rel=0.005)


@pytest.mark.parametrize(
    ("value", "kept"),
    [(0, 0), (999, 999), (1_234, 1_230), (-1_236, -1_240), (98_765_432, 98_800_000), (99_999, 100_000)],
)
def test_rounding_keeps_three_digits_and_the_sign(spark: SparkSession, value: int, kept: int) -> None:
    frame = spark.createDataFrame([(value,)], "value long").select(rounded("value").alias("kept"))
    assert frame.collect()[0]["kept"] == kept


def test_throughput_adds_messages_and_bytes_per_member_and_stretch(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    a.send(100 * MS, first=1, count=10, size=1_000)
    a.deliver(200 * MS, a, first=1, count=10, size=1_000)
    b.deliver(300 * MS, a, first=1, count=10, size=1_000)
    a.send(1_100 * MS, first=11, count=3, size=30)
    b.deliver(1_200 * MS, a, first=11, count=3, size=30)
    per_member = throughput(table(spark, a, b))
    columns = ("bucket", "member", "sent_messages", "delivered_messages", "delivered_bytes", "delivered_runs")
    assert rows_of(per_member, *columns) == [
        (WALL, "A", 10, 10, 1_000, 1),
        (WALL, "B", 0, 10, 1_000, 1),
        (WALL + SECOND, "A", 3, 0, 0, 0),
        (WALL + SECOND, "B", 0, 3, 30, 1),
    ]
    of_group = rows_of(throughput_of_group(per_member), "bucket", "sent_messages", "delivered_messages", "members")
    assert of_group == [(WALL, 10, 20, 2), (WALL + SECOND, 3, 3, 2)]


def test_run_sizes_and_their_classes(spark: SparkSession) -> None:
    a = Diary("A")
    for first, count in ((1, 1), (2, 3), (5, 4), (9, 7), (16, 64)):
        a.send(first, first=first, count=count, size=10 * count)
    frame = table(spark, a)
    columns = (
        "sender",
        "runs",
        "messages",
        "bytes",
        "messages_per_run_p50",
        "messages_per_run_max",
        "bytes_per_run_max",
    )
    assert rows_of(run_sizes(frame), *columns) == [("A", 5, 79, 790, 4.0, 64, 640)]
    assert rows_of(run_size_classes(frame), "at_least", "runs", "messages") == [
        (1, 1, 1),
        (2, 1, 3),
        (4, 2, 11),
        (64, 1, 64),
    ]


def test_drops_are_counted_by_reason_and_member(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for reason in ("old view", "old view", "no seal", None):
        a("drop", 1, reason=reason)
    b("refuse", 1, reason="other profile")
    assert rows_of(drops(table(spark, a, b)), "member", "kind", "reason", "times") == [
        ("A", "drop", "no reason given", 1),
        ("A", "drop", "no seal", 1),
        ("A", "drop", "old view", 2),
        ("B", "refuse", "other profile", 1),
    ]


def test_retransmissions_are_counted_where_asked_and_where_repeated(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for first in range(1, 5):
        a.send(first, first=first)
    b("retransmit_request", 10, peer=a.address, stream=a.address, low=2, high=5)
    a("retransmit", 11, origin="A", origin_incarnation="a1", first=2, count=1, bytes=100, peer=b.address)
    columns = ("member", "requests", "runs_asked_for", "repeats", "repeated_bytes", "repeated_share")
    assert rows_of(retransmissions(table(spark, a, b)), *columns) == [
        ("A", 0, 0, 1, 100, 0.25),
        ("B", 1, 3, 0, 0, None),
    ]


def _change_of_view() -> tuple[Diary, Diary, Diary]:
    """A and B go from view 1 to 2; A needs two ballots; C joins and was bound by nobody."""
    a, b, c = Diary("A"), Diary("B"), Diary("C")
    for member in (a, b):
        member.view(0, 1, [a, b])
    a("flush", 100 * MS, stage="collect", ballot_number=1, ballot_leader=a.address)
    b("flush", 101 * MS, stage="collect", ballot_number=1, ballot_leader=a.address)
    a("flush", 120 * MS, stage="collect", ballot_number=2, ballot_leader=a.address)
    for member, at_us in ((a, 130 * MS), (b, 140 * MS)):
        member("flush", at_us, stage="accepted", ballot_number=2, ballot_leader=a.address)
    a.view(150 * MS, 2, [a, b, c])
    b.view(161 * MS, 2, [a, b, c])
    c.view(170 * MS, 2, [a, b, c])
    b("flush", 900 * MS, stage="collect", ballot_number=5, ballot_leader=b.address)  # ends with no view
    return a, b, c


def test_a_change_of_view_lasts_from_the_first_collect_to_the_view(spark: SparkSession) -> None:
    changes = view_changes(table(spark, *_change_of_view()))
    found = rows_of(changes.where("view_number = 2"), "member", "flush_us", "agree_us", "attempts", "came_by_merge")
    assert found == [
        ("A", 50 * MS, 30 * MS, 2, False),
        ("B", 60 * MS, 39 * MS, 1, False),
        ("C", None, None, 0, False),
    ]


def test_a_change_of_view_is_summed_up_over_the_members(spark: SparkSession) -> None:
    changes = view_changes_of_group(table(spark, *_change_of_view()))
    columns = ("view_number", "installed_by", "flush_p50_us", "flush_max_us", "attempts")
    assert rows_of(changes, *columns) == [(1, 2, None, None, 0), (2, 3, 55.0 * MS, 60 * MS, 2)]
    assert rows_of(changes.where("view_number = 2"), "from_us", "to_us") == [(WALL + 100 * MS, WALL + 170 * MS)]


def test_blocked_time_ends_with_unblock_or_with_the_journal(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for member in (a, b):
        member.view(0, 1, [a, b])
    a("block", 100 * MS, reason="no majority")
    a("unblock", 350 * MS)
    a.view(351 * MS, 2, [a, b])
    a("block", 500 * MS, reason="no majority")
    a("unblock", 600 * MS)
    b("block", 100 * MS, reason="no majority")
    b("stats", 900 * MS)
    frame = table(spark, a, b)
    columns = ("member", "times", "blocked_us", "longest_us")
    assert rows_of(blocked_time(frame), *columns) == [
        ("A", 2, 350 * MS, 250 * MS),
        ("B", 1, 800 * MS, 800 * MS),
    ]
    assert rows_of(blocked_spans(frame), "member", "ended") == [("A", True), ("A", True), ("B", False)]


def test_a_member_is_blocked_during_a_change_of_view(spark: SparkSession) -> None:
    """A and B from their first answer to the view, B once more to the end of its journal.  The joiner C is not."""
    found = rows_of(
        blocked_spans(table(spark, *_change_of_view())), "member", "from_us", "blocked_us", "ended", "reason"
    )
    assert found == [
        ("A", WALL + 100 * MS, 50 * MS, True, "view change"),
        ("B", WALL + 101 * MS, 60 * MS, True, "view change"),
        ("B", WALL + 900 * MS, 0, False, "view change"),
    ]


def test_a_blocked_time_has_the_reason_of_its_block(spark: SparkSession) -> None:
    """One that begins with an attempt at a view goes on when the majority is lost, and ends with the member."""
    a = Diary("A")
    a("flush", 10 * MS, stage="collect", ballot_number=1, ballot_leader=a.address)  # the birth of the group
    a.view(20 * MS, 1, [a])
    a("merge", 100 * MS, stage="collect", ballot_number=2, ballot_leader=a.address)
    a("block", 150 * MS, reason="no majority")
    a("stop", 250 * MS, reason="excluded")
    found = rows_of(blocked_spans(table(spark, a)), "from_us", "to_us", "blocked_us", "ended", "reason")
    assert found == [(WALL + 100 * MS, WALL + 250 * MS, 150 * MS, True, "no majority")]


def _failover() -> tuple[Diary, Diary, Diary]:
    """A is killed at 1 s; B delivers nothing from 0.99 s to 1.2 s; an idle hour lies far behind the fault."""
    a, b, c = Diary("A"), Diary("B"), Diary("C")
    for at_us in range(0, 1_000 * MS, 10 * MS):
        b.deliver(at_us, a, first=at_us + 1)
        c.deliver(at_us, a, first=at_us + 1)
    for member in (b, c):
        member("fault", 1_000 * MS, reason="kill", members=[a.address])
    for at_us in range(1_200 * MS, 2_000 * MS, 10 * MS):
        b.deliver(at_us, b, first=at_us)
    for at_us in range(1_150 * MS, 2_000 * MS, 10 * MS):
        c.deliver(at_us, b, first=at_us)
    b.deliver(3_600 * SECOND, b, first=9_999_999)
    return a, b, c


def test_the_gap_at_a_failover_is_the_longest_pause_around_the_mark(spark: SparkSession) -> None:
    a, b, c = _failover()
    b.rows[-1]["mono_us"] = 12 * SECOND + 3_600 * SECOND
    b.rows.insert(-1, {**b.rows[-1], "mono_us": 12 * SECOND})  # the idle hour begins 11 s after the fault
    b.rows.insert(-2, {**b.rows[-1], "mono_us": 11_500 * MS})
    for at_us in range(2_000 * MS, 11_500 * MS, 100 * MS):
        b.rows.append({**b.rows[-1], "mono_us": at_us})
    found = rows_of(failover_gaps(table(spark, a, b, c)), "member", "gap_us", "mark_us", "reason", "named")
    mark = WALL + 1_000 * MS
    assert found == [("B", 210 * MS, mark, "kill", ["A@a1"]), ("C", 160 * MS, mark, "kill", ["A@a1"])]


def test_a_mark_written_after_the_gap_still_finds_it(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for at_us in (0, 100 * MS, 700 * MS, 710 * MS, 800 * MS):
        b.deliver(at_us, a, first=at_us + 1)
    b("fault", 790 * MS, reason="kill", members=[a.address])
    assert rows_of(failover_gaps(table(spark, a, b)), "member", "gap_us") == [("B", 600 * MS)]


def test_whom_a_fault_names_is_no_survivor(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for member in (a, b):
        member.deliver(0, a, first=1)
        member("fault", 10 * MS, reason="pause", members=[a.address])
        member.deliver(500 * MS, a, first=2)
    assert rows_of(failover_gaps(table(spark, a, b)), "member", "gap_us") == [("B", 500 * MS)]


def test_each_of_two_faults_has_its_own_gap(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for at_us in (0, 300 * MS, 3_600 * MS, 4_800 * MS):
        b.deliver(at_us, a, first=at_us + 1)
    b("fault", 100 * MS, reason="kill", members=[a.address])
    b("fault", 4_100 * MS, reason="cut", members=["C@c1"])
    found = rows_of(failover_gaps(table(spark, b)), "reason", "gap_us")
    assert found == [("cut", 1_200 * MS), ("kill", 3_300 * MS)]


def _lives() -> tuple[Diary, ...]:
    a, b, old_c, new_c = Diary("A"), Diary("B"), Diary("C", "c1"), Diary("C", "c2")
    a.view(0, 1, [a, b, old_c])
    b.view(0, 1, [a, b, old_c])
    old_c.view(0, 1, [a, b, old_c])
    old_c.send(1 * SECOND, first=1, count=4, size=40)
    a.view(2 * SECOND, 2, [a, b], primary=False)
    b.view(2 * SECOND, 2, [a, b])
    new_c.view(5 * SECOND, 3, [a, b, new_c], subgroups=[[a.address, b.address], [new_c.address]])
    a.view(5 * SECOND, 3, [a, b, new_c])
    a.deliver(6 * SECOND, new_c, first=1, count=7)
    b("stop", 7 * SECOND, reason="left")
    a("stats", 8 * SECOND)
    return a, b, old_c, new_c


def test_lives_know_how_they_ended(spark: SparkSession) -> None:
    found = lives(table(spark, *_lives()))
    columns = ("member", "life", "ending", "stop_reason", "messages_sent", "messages_delivered", "views")
    assert rows_of(found, *columns) == [
        ("A", 1, "open", None, 0, 7, 3),
        ("B", 1, "stopped", "left", 0, 0, 2),
        ("C", 1, "cut off", None, 4, 0, 1),
        ("C", 2, "open", None, 0, 0, 1),
    ]
    (total,) = overviews(collect(found, Life))
    assert (total.group, total.names, total.lives, total.crashes, total.returns) == ("g", 3, 4, 1, 1)
    assert (total.messages_sent, total.bytes_sent) == (4, 40)
    assert (total.start_us, total.end_us) == (WALL, WALL + 8 * SECOND)


def test_a_life_without_a_last_word_is_cut_off_only_with_a_reason(spark: SparkSession) -> None:
    a, b, c, d = (Diary(name) for name in "ABCD")
    everyone = [a, b, c, d]
    for member in everyone:
        member.view(0, 1, everyone)
    a("fault", 10 * MS, reason="kill", members=[d.address])
    a.view(20 * MS, 2, [a, b])
    endings = rows_of(lives(table(spark, *everyone)), "member", "ending")
    assert endings == [("A", "open"), ("B", "open"), ("C", "cut off"), ("D", "cut off")]


def test_who_was_only_cut_off_from_the_others_for_a_while_was_not_cut_off(spark: SparkSession) -> None:
    a, b = Diary("A"), Diary("B")
    for member in (a, b):
        member.view(0, 1, [a, b])
        member("fault", 10 * MS, reason="isolation", members=[b.address])
    b.view(20 * MS, 2, [b])
    a.view(30 * MS, 2, [a])  # the last view of the group is without B
    b("stats", 90 * MS)
    assert rows_of(lives(table(spark, a, b)), "member", "ending") == [("A", "open"), ("B", "open")]


def test_views_last_until_the_next_or_the_last_record(spark: SparkSession) -> None:
    spans = view_spans(table(spark, *_lives()))
    found = rows_of(
        spans.where("member in ('A', 'C')"), "address", "view_number", "primary", "merged", "from_us", "to_us"
    )
    assert found == [
        ("A@a1", 1, True, False, WALL, WALL + 2 * SECOND),
        ("A@a1", 2, False, False, WALL + 2 * SECOND, WALL + 5 * SECOND),
        ("A@a1", 3, True, False, WALL + 5 * SECOND, WALL + 8 * SECOND),
        ("C@c1", 1, True, False, WALL, WALL + 1 * SECOND),
        ("C@c2", 3, True, True, WALL + 5 * SECOND, WALL + 5 * SECOND),
    ]


def test_marks_of_many_journals_are_one_mark(spark: SparkSession) -> None:
    diaries = [Diary(name) for name in "ABC"]
    for offset, diary in enumerate(diaries):
        diary("fault", 1_000 * MS + offset, reason="kill", members=["E@e1", "D@d1"])
        diary("fault", 4_000 * MS + offset, reason="kill", members=["D@d1", "E@e1"])
        diary("quiet", 9_000 * MS - offset)
    found = rows_of(marks(table(spark, *diaries)), "kind", "mark_us", "reason", "named", "written_by")
    assert found == [
        ("fault", WALL + 1_000 * MS, "kill", ["D@d1", "E@e1"], 3),
        ("fault", WALL + 4_000 * MS, "kill", ["D@d1", "E@e1"], 3),
        ("quiet", WALL + 9_000 * MS - 2, "", [], 3),
    ]


def test_nothing_in_gives_nothing_out(spark: SparkSession) -> None:
    assert [name for name, measure in measures_of(table(spark)).items() if measure.count()] == []


def test_a_measure_never_mixes_groups(spark: SparkSession) -> None:
    diaries = [Diary("A", group=group) for group in ("one", "two")]
    for latency_us, diary in enumerate(diaries, start=5):
        diary.send(0, first=1)
        diary.deliver(latency_us, diary, first=1)
    found = rows_of(delivery_latency(table(spark, *diaries)), "group", "p50_us")
    assert found == [("one", 5.0), ("two", 6.0)]
