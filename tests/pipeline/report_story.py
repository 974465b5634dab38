"""A group in a few hundred records, for tests of the report: four members, the first is killed and comes back."""

import random
from collections.abc import Sequence

from pyspark.sql import SparkSession

from pygroups.pipeline.history import History
from pygroups.pipeline.verdict import AuditResult, Quarantined, Verdict, Violation
from tests.pipeline.measure_rows import MS, SECOND, Diary, table

GROUP = "orders"
KILLED_US = 4_200 * MS
BACK_US = 7_900 * MS
END_US = 12 * SECOND
PROMISED = (
    "virtual-synchrony",
    "fifo",
    "total-order",
    "gap-free-prefix",
    "no-duplication",
    "integrity",
    "view-agreement",
)


class Story:
    """Writes the diaries; `step_us` between two runs of one member sets how many records there are."""

    def __init__(self, step_us: int = 50 * MS, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.a, self.b, self.c, self.d = (
            Diary(name, group=GROUP) for name in ("austin", "boston", "chicago", "denver")
        )
        self.returned = Diary("austin", "a2", group=GROUP)
        self.diaries = [self.a, self.b, self.c, self.d, self.returned]
        self._sent = {diary.address: 0 for diary in self.diaries}
        self._tell(step_us)

    def _tell(self, step_us: int) -> None:
        four, three = [self.a, self.b, self.c, self.d], [self.b, self.c, self.d]
        again = [*three, self.returned]
        for diary in four:
            diary("start", 0)
        for number, members in enumerate((four[:1], four[:2], four), start=1):
            self._change(number * 120 * MS, number, members)
        self._talk(400 * MS, KILLED_US, step_us, four)
        for diary in three:
            diary("fault", KILLED_US, reason="kill", members=[self.a.address])
            diary("suspect", KILLED_US + 9 * MS, peer=self.a.address)
            diary("drop", KILLED_US + 20 * MS, reason="old view")
        self._change(KILLED_US + 40 * MS, 4, three)
        self._talk(KILLED_US + 140 * MS, BACK_US, step_us, three)
        self.returned("start", BACK_US)
        self._change(BACK_US + 60 * MS, 5, again)
        self._talk(BACK_US + 120 * MS, END_US - SECOND, step_us, again)
        self.b("retransmit_request", 9 * SECOND, peer=self.c.address, low=10, high=13)
        self.c("retransmit", 9 * SECOND + 400, origin="chicago", origin_incarnation="c1", count=3, bytes=300, first=10)
        for diary in again:
            diary("quiet", END_US - 500 * MS)
            diary("stop", END_US, reason="left")

    def _change(self, at_us: int, number: int, members: Sequence[Diary]) -> None:
        for diary in members:
            ballot = {"ballot_number": number, "ballot_leader": members[0].address}
            if diary.rows[-1]["kind"] != "start":
                diary("flush", at_us - self.rng.randint(15, 30) * MS, stage="collect", **ballot)
                diary("flush", at_us - self.rng.randint(5, 10) * MS, stage="accepted", **ballot)
            diary.view(at_us + self.rng.randint(0, 4) * MS, number, members)
        self.position = 0

    def _talk(self, start_us: int, end_us: int, step_us: int, members: Sequence[Diary]) -> None:
        for at_us in range(start_us, end_us, step_us):
            for sender in members:
                self._run(at_us + self.rng.randint(0, step_us // 2), sender, members)

    def _run(self, at_us: int, sender: Diary, members: Sequence[Diary]) -> None:
        count = self.rng.choice((1, 1, 2, 5, 17, 40))
        first = self._sent[sender.address] + 1
        self._sent[sender.address] += count
        sender.send(at_us, first=first, count=count, size=90 * count)
        for diary in members:
            delay_us = int(self.rng.lognormvariate(7.2, 0.7))
            diary.deliver(at_us + delay_us, sender, first, count, 90 * count, position=self.position)
        self.position += count

    @property
    def messages(self) -> int:
        return sum(self._sent.values())

    def history(self, spark: SparkSession, *others: Diary) -> History:
        return table(spark, *self.diaries, *others)


def held(promise: str, judged: int = 1_000) -> Verdict:
    return Verdict(promise, GROUP, "held", judged, 0, "")


def well(spark: SparkSession, story: Story, *others: Diary) -> AuditResult:
    """An audit in which everything that was judged held."""
    verdicts = [held(promise) for promise in PROMISED]
    verdicts.append(Verdict("self-delivery", GROUP, "held", 900, 12, "austin@a1 did not reach quiet"))
    reason = "the profile total does not make this promise"
    verdicts.append(Verdict("total-order-global", GROUP, "not judged", 0, 0, reason, excused=True))
    verdicts.append(Verdict("merge-agreement", GROUP, "not judged", 0, 0, "no merge", excused=True))
    rows = sum(len(diary.rows) for diary in story.diaries)
    return AuditResult([GROUP], verdicts, 5, rows, [], story.history(spark, *others), spark)


def badly(spark: SparkSession, story: Story, *others: Diary) -> AuditResult:
    """An audit that found two promises broken, could not judge one, and met damage."""
    audit = well(spark, story, *others)
    swap = next(row for row in story.c.rows if row["kind"] == "deliver" and row["view_number"] == 4 and row["position"])
    position, first = swap["position"], swap["first"]
    assert isinstance(position, int) and isinstance(first, int)
    origin = f"{swap['origin']}@{swap['origin_incarnation']}"
    view = f"{swap['view_number']}:{swap['view_creator']}"
    order = Violation(
        "total-order", GROUP, view, story.c.address, story.b.address, origin, first, position,
        f"{story.c.address} has {origin}:{first} before what {story.b.address} has after it",
    )  # fmt: skip
    skips = [
        Violation("fifo", GROUP, view, story.d.address, None, origin, 7 + n, None, f"message {7 + n} was skipped")
        for n in range(70)
    ]
    audit.verdicts[2] = Verdict("total-order", GROUP, "broken", 1_000, 0, "", [order], broken=1)
    audit.verdicts[1] = Verdict("fifo", GROUP, "broken", 1_000, 3, "a journal has a hole", skips, broken=170)
    audit.verdicts.append(Verdict("liveness", GROUP, "not judged", 0, 0, "no quiet mark in any journal"))
    audit.quarantined = [Quarantined("orders/denver@d1/000000.journal", 1_048_576, "checksum of a frame differs")]
    return audit
