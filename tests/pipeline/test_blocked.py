"""The measure of blocked time over journals that members wrote, and its line in the report."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from pygroups.pipeline.audit import audit
from pygroups.pipeline.measures.blocked import VIEW_CHANGE, blocked_spans
from pygroups.pipeline.report.gather import findings_of
from pygroups.pipeline.report.render import page_of
from pygroups.sim import scenario
from tests.e2e.group import Group
from tests.majority import majority
from tests.pipeline.spark_session import spark
from tests.scenarios.common import QUICK

__all__ = ["spark"]

pytestmark = pytest.mark.slow


def spans_of(journal: Path) -> dict[str, list[Row]]:
    """The blocked times of each member, in their order."""
    rows = blocked_spans(audit([journal], master="local[2]").history).orderBy("member", "from_us").collect()
    return {name: [row for row in rows if row.member == name] for name in sorted({row.member for row in rows})}


def test_survivors_of_a_kill_were_blocked_until_the_next_view(spark: SparkSession, tmp_path: Path) -> None:
    """Real processes, as in the demo.  The report names each of them."""
    with Group(tmp_path) as group:
        members = group.start("A", "B", "C")
        for worker in members:
            worker.order("send", count=1 << 40, size=100, burst=10, pause=0.02)
        killed, *survivors = members
        group.everywhere("fault", "kill", [killed.address])
        killed.signal(signal.SIGKILL)
        group.settle()
        group.quiet(group.stop_sending())
        group.everywhere("heal")
        group.everywhere("quiet")
        group.leave()
    result = audit([group.journal], master="local[2]")
    spans = blocked_spans(result.history).where("ended").orderBy("from_us").collect()
    marked = max(row.time_us for row in result.history.events.where("kind = 'fault'").collect())
    for worker in survivors:
        change = next(row for row in spans if row.member == worker.name and row.from_us >= marked)
        assert change.reason == VIEW_CHANGE
        assert 0 < change.blocked_us < 10_000_000
    findings = findings_of(result)
    assert {one.member for one in findings.groups[0].blocked} >= {worker.name for worker in survivors}
    page = page_of(findings)
    assert all(f"{worker.name} was blocked" in page for worker in survivors)


def test_a_member_without_a_majority_is_blocked_until_it_goes_on_or_ends(spark: SparkSession, tmp_path: Path) -> None:
    """All three sides of five members are blocked for ten seconds.  C, D and E go on, and A and B are excluded."""
    with scenario("A B C D E", profile=majority("total"), journal=True, **QUICK) as group:
        for one, others in (("A B", "C D E"), ("C D", "E")):
            group.cut(one, others)
        group.after(10)
        group.mend("C D", "E")
        group.after(10)
        group.mend("A B", "C D E")
        group.until(lambda: sorted(group.world.running) == ["C", "D", "E"], 10)
        group.settles()
        group.save_journals(tmp_path)
    spans = spans_of(tmp_path)
    for name, seconds in (("A", 20), ("C", 10), ("E", 10)):
        (lost,) = [row for row in spans[name] if row.reason == "no majority"]
        assert lost.ended
        assert abs(lost.blocked_us / 1_000_000 - seconds) < 5
