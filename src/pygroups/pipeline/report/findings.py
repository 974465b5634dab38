"""The content of the report as plain values: small, bounded and without Spark, so that drawing can be tested alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pygroups.pipeline.verdict import Hole, Quarantined, Verdict, Violation, Work


@dataclass(frozen=True)
class Life:
    """One incarnation of one member; times in microseconds of the wall clock, `kinds` those of its records."""

    member: str
    incarnation: str
    profile: str | None
    life: int
    from_us: int
    to_us: int
    ending: str
    stop_reason: str | None
    messages_sent: int
    messages_delivered: int
    bytes_sent: int
    host: str | None = None
    kinds: Sequence[str] = ()

    @property
    def address(self) -> str:
        """The incarnation's address, `name@incarnation`."""
        return f"{self.member}@{self.incarnation}"


@dataclass(frozen=True)
class ViewSpan:
    """One view at one member, from its installation to the next."""

    member: str
    incarnation: str
    view_number: int
    view_creator: str
    members: Sequence[str]
    primary: bool | None
    merged: bool
    from_us: int
    to_us: int


@dataclass(frozen=True)
class FaultMark:
    """A mark in the journals: a fault, its healing, or the moment when the whole group should have settled."""

    mark_us: int
    kind: str
    reason: str
    named: Sequence[str]


@dataclass(frozen=True)
class Latency:
    """Delivery latency, by `scope` of a `stretch` of time that begins at `bucket`, of one `sender`, or of `all`."""

    scope: str
    bucket: int
    sender: str
    messages: int
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: int


@dataclass(frozen=True)
class Traffic:
    """Deliveries and sends of the incarnations of one name, or of all if None, in the stretch of time from `bucket`
    on."""

    member: str | None
    bucket: int
    delivered_messages: int
    delivered_bytes: int
    sent_messages: int
    sent_bytes: int


@dataclass(frozen=True)
class RunSizes:
    """The sizes of the runs of one sender."""

    sender: str
    runs: int
    messages: int
    messages_per_run_p50: float
    messages_per_run_max: int
    bytes_per_run_p50: float


@dataclass(frozen=True)
class SizeClass:
    """How many runs had `at_least` messages and fewer than twice as many."""

    at_least: int
    runs: int


@dataclass(frozen=True)
class ViewChangeTime:
    """The time of one view change, over all members that installed the view."""

    view_number: int
    view_creator: str
    members: Sequence[str]
    installed_by: int
    from_us: int
    to_us: int
    flush_p50_us: float | None
    flush_max_us: float | None
    attempts: int
    came_by_merge: bool


@dataclass(frozen=True)
class FailoverGap:
    """The longest time without a delivery at one survivor around a fault."""

    member: str
    incarnation: str
    mark_us: int
    reason: str
    named: Sequence[str]
    gap_us: int


@dataclass(frozen=True)
class BlockedTime:
    """The times in which one member was blocked."""

    member: str
    times: int
    blocked_us: int
    longest_us: int


@dataclass(frozen=True)
class Drop:
    """The messages that one member dropped or refused, for one reason."""

    member: str
    kind: str
    reason: str
    times: int


@dataclass(frozen=True)
class Retransmission:
    """The requests and retransmissions of one member."""

    member: str
    requests: int
    runs_asked_for: int
    repeats: int
    repeated_bytes: int
    repeated_share: float | None


@dataclass(frozen=True)
class ClockDifference:
    """The lead of the clock of `other_host` over the clock of `host`."""

    host: str
    other_host: str
    ahead_us: float
    round_trip_us: float


@dataclass(frozen=True)
class Overview:
    """One group in a few numbers; `names` counts names of members, `lives` their incarnations."""

    group: str
    names: int
    lives: int
    crashes: int
    returns: int
    messages_sent: int
    messages_delivered: int
    bytes_sent: int
    profiles: Sequence[str]
    kinds: Sequence[str]
    hosts: int
    start_us: int
    end_us: int


@dataclass(frozen=True)
class GroupFindings:
    """The report's content for one group. `bucket_us` is the length of the stretches of the series.

    `left_out` has the number of entries that are not shown, by name of the field.
    """

    overview: Overview
    bucket_us: int
    lives: Sequence[Life]
    latency_of_all: Latency | None = None
    views: Sequence[ViewSpan] = ()
    marks: Sequence[FaultMark] = ()
    latency: Sequence[Latency] = ()
    senders: Sequence[Latency] = ()
    traffic: Sequence[Traffic] = ()
    sent: Sequence[Traffic] = ()
    run_sizes: Sequence[RunSizes] = ()
    size_classes: Sequence[SizeClass] = ()
    changes: Sequence[ViewChangeTime] = ()
    gaps: Sequence[FailoverGap] = ()
    blocked: Sequence[BlockedTime] = ()
    drops: Sequence[Drop] = ()
    retransmissions: Sequence[Retransmission] = ()
    clocks: Sequence[ClockDifference] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The group's name."""
        return self.overview.group

    @property
    def start_us(self) -> int:
        """When the first record was written."""
        return self.overview.start_us

    @property
    def end_us(self) -> int:
        """When the last record was written."""
        return self.overview.end_us

    @property
    def names(self) -> list[str]:
        """The members' names that are shown, in the order in which they were first heard of."""
        return list(dict.fromkeys(life.member for life in sorted(self.lives, key=lambda life: life.from_us)))


@dataclass(frozen=True)
class NearbyRecord:
    """One record near a violation: a run that was sent or delivered."""

    kind: str
    member: str
    incarnation: str
    time_us: int
    index: int
    origin: str | None
    origin_incarnation: str | None
    first: int | None
    count: int | None
    position: int | None
    peer: str | None


@dataclass(frozen=True)
class Diagram:
    """The records around one violation, enough for a space-time diagram."""

    violation: Violation
    events: Sequence[NearbyRecord]


@dataclass(frozen=True)
class Findings:
    """The whole report. `summary` has one verdict per promise, `verdicts` one per promise, group and history.

    `unjudged` names the promises that no rule judges yet; `work` has the input and the steps of the audit, if known.
    """

    summary: Sequence[Verdict]
    verdicts: Sequence[Verdict]
    groups: Sequence[GroupFindings]
    totals: Sequence[Overview]
    files: int
    rows: int
    quarantined: Sequence[Quarantined] = ()
    holes: Sequence[Hole] = ()
    diagrams: Sequence[Diagram] = ()
    unjudged: Sequence[str] = ()
    work: Work | None = None
