"""The top of every stack: it makes runs of payloads and deliveries of runs, and records both in the journal.

A run is closed and sent when it is full.  A run is also sent at the end of a turn if fewer than `runs_in_flight` own
runs are in flight; otherwise the run stays open and grows until one of them has landed.  There is no timer: a single
message finds no run in flight and leaves at once.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.tables import Tables

from .address import Address
from .columns import columns_of, columns_of_view
from .errors import UsageError
from .events import (
    Blocked,
    Event,
    Excluded,
    Freed,
    FreedTo,
    Gap,
    Gone,
    Hold,
    Leave,
    NewView,
    Release,
    Stability,
    Unblocked,
    Undelivered,
)
from .layer import NEVER, Env, PassingLayer
from .limits import ENTRY_BYTES, RUN_MESSAGES_MAX
from .open_run import OpenRun, ToOne
from .run import Run, pack, payloads_of
from .run_size import RunSize
from .services import waits_for_all
from .view import ViewId


class Delivered(Event):
    """To the application: a delivered run of multicasts, or a run that was sent to this member alone."""

    run: Run
    view: ViewId | None
    position: int  # the number of messages delivered before in this view; -1 for a unicast


class Reached(Event):
    """To the application: own multicasts below `delivered` were delivered here, and those below `stable` everywhere."""

    delivered: int
    stable: int


class Top(PassingLayer):
    """The top layer.  An own run has landed when it is delivered here, or when all members have it: see
    services.waits_for_all."""

    __slots__ = (
        "alone",
        "consumed",
        "cut_bytes",
        "delivered",
        "ending",
        "flight",
        "freed_bytes",
        "leave_at",
        "leaving",
        "open",
        "position",
        "reached",
        "run_limit",
        "run_min",
        "run_size",
        "slowest",
        "stable",
        "stopped",
        "unicasts",
        "unused",
        "waits_for_all",
    )

    tables: ClassVar[Tables] = {
        "above": "turn",
        "below": "window_runs",
        "flight": "window_runs",
        "open.payloads": "run_messages",
        "open.payloads[]": "payload_max",
        "reached": "fixed",
        "slowest": "slowest",
        "unicasts": "peers",
        "unicasts[].payloads": "run_messages",
        "unicasts[].payloads[]": "payload_max",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.waits_for_all = waits_for_all(env.services)
        config = env.config
        least, most = min(config.run_bytes_lossy, config.run_bytes), config.run_bytes * config.run_growth
        self.run_size = RunSize(least, config.run_bytes, most)
        self.alone = config.run_bytes + ENTRY_BYTES  # a larger payload, with its length, is alone in its run
        self.run_limit = self.alone  # of the payloads of a run
        self.run_min = env.config.run_bytes_min
        self.open = OpenRun(1, [], 0)  # multicasts
        self.unicasts: dict[Address, ToOne] = {}  # by receiver; former members too, because their numbers continue
        self.unused = 1  # forgotten receivers were sent only numbers below this
        self.flight: list[Run] = []  # own multicasts in flight, oldest first
        self.cut_bytes = 0  # of all own multicasts so far
        self.freed_bytes = 0  # of the own multicasts that have left the window
        self.consumed = 1  # all other members have consumed the own multicasts below this
        self.slowest: tuple[Address, ...] = ()  # the members that have consumed least of them, as far as known
        self.position = 0
        self.delivered = 1  # own multicasts below this were delivered here
        self.stable = 1
        self.reached = (1, 1)  # the last Reached that the application got
        self.leaving = False  # the application asked to leave; Leave goes down when no own run is in flight
        self.leave_at = NEVER  # the time at which the member leaves without the other members' consent
        self.stopped = False
        self.ending: Excluded | None = None  # the reason of the end, until the application gets it

    # -- sending

    def accept(self, payload: bytes, to: Address | None = None) -> int:
        """Accept a payload, and return its number.  The payload leaves in this turn or a later one."""
        entry = len(payload) + ENTRY_BYTES
        opened = self.open if to is None else self._to_one(to)
        size = opened.size + entry
        if size > self.run_limit or entry > self.alone or len(opened.payloads) == RUN_MESSAGES_MAX:
            limit = self.env.config.payload_max
            if len(payload) > limit:
                raise UsageError(f"the payload has {len(payload):,} bytes; the limit is {limit:,}: send it in parts")
            if opened.payloads and not self.stopped:  # after the end Left.unknown or Undelivered reports them
                self._cut(opened, to)
                size = entry
        payloads = opened.payloads
        payloads.append(payload)
        opened.size = size
        number = opened.first + len(payloads) - 1
        if entry > self.alone and not self.stopped:
            self._cut(opened, to)  # a payload that travels in pieces is alone in its run
        return number

    def _to_one(self, to: Address) -> ToOne:
        opened = self.unicasts.get(to)
        if opened is None:
            opened = self.unicasts[to] = ToOne(self.unused, [], 0)  # a forgotten receiver gets no number twice
        return opened

    def room(self, to: Address | None = None) -> int:
        """The free bytes of the window, which holds the own multicasts that some other member has not consumed.
        With `to`, the free bytes of the window for messages to this member alone."""
        if to is None:
            return self.env.config.window - (self.cut_bytes - self.freed_bytes) - self.open.size
        opened = self.unicasts.get(to)
        used = 0 if opened is None else opened.cut_bytes - opened.freed_bytes + opened.size
        return self.env.config.window - used

    def sent_bytes(self) -> int:
        """The bytes of all own multicasts accepted so far, in the same measure as room()."""
        return self.cut_bytes + self.open.size

    def waits_for(self) -> tuple[Address, ...]:
        """The members that keep the window of multicasts full: a few of those that have consumed least.  Empty while
        the window has room for a full run.  It can take a second until these members are known."""
        config = self.env.config
        opens = min(config.window, max(self.alone, config.window // 4))
        return () if self.room() >= opens else self.slowest

    def waits_for_readers(self) -> bool:
        """Whether all members have delivered most of the multicasts in the window, and some have not consumed them."""
        return 2 * (self.stable - self.consumed) > self.unknown().stop - self.consumed

    def unknown(self) -> range:
        """The numbers of the own multicasts that were accepted and not delivered here."""
        return range(self.delivered, self.open.first + len(self.open.payloads))

    def end_turn(self) -> None:
        if self.stopped:
            self._stop()
            return
        self.wake = self.leave_at
        if self.open.payloads and self.env.view is not None and len(self.flight) < self.env.config.runs_in_flight:
            self._cut(self.open, None)
        if self.unicasts:
            for dest, opened in self.unicasts.items():
                if opened.payloads:
                    self._cut(opened, dest)
        self._tell_reached()
        if self.leaving and not self.flight and not self.open.payloads:
            self.leaving = False
            self.below.append(Leave())

    def _tell_reached(self) -> None:
        reached = (self.delivered, self.stable)
        if reached != self.reached:
            self.reached = reached
            self.above.append(Reached(*reached))

    def _cut(self, opened: OpenRun, dest: Address | None) -> None:
        me, count, body = self.env.me, len(opened.payloads), pack(opened.payloads)
        run = Run(me, dest, (), me, opened.first, 0, count, body)
        opened.first += count
        opened.payloads, opened.size = [], 0
        (self.env.totals.sent if dest is None else self.env.totals.sent_to_one).add(run)
        if dest is None:
            self.run_limit = self.run_size.look(self.env.sent, self.env.requested) + ENTRY_BYTES
            self.flight.append(run)
            self.cut_bytes += max(len(body), self.run_min)
            if self.env.run_records:
                self.env.record("send", **columns_of(run))
        else:
            self.unicasts[dest].cut_bytes += max(len(body), self.run_min)
        self.below.append(run)

    # -- receiving

    def rise(self, run: Run) -> None:
        if run.heads:
            self.env.drop("head of no layer")
        elif run.dest is None and run.stream is None:
            self.env.drop("multicast of no stream")  # no layer below has given it a stream and a number
        elif run.count and (not self.stopped or (self.ending is not None and run.stream is None)):
            self._deliver(run)  # also unicasts that arrived together with the member's end: they are acknowledged

    def _deliver(self, run: Run) -> None:
        env = self.env
        if run.dest is not None and run.stream is None:
            env.totals.delivered_to_one.add(run)
            self.above.append(Delivered(run, env.view, -1))
            return
        env.totals.delivered.add(run)
        if env.run_records:
            payload = {"payload": self._archived(run)} if env.archiving else {}
            env.record("deliver", **columns_of(run), stream=run.stream, seq=run.seq, position=self.position, **payload)
        self.above.append(Delivered(run, env.view, self.position))
        self.position += run.count
        if run.origin == env.me:
            self.delivered = max(self.delivered, run.first + run.count)
            self.wake_at(env.now)
            if not self.waits_for_all:
                self._landed(self.delivered)

    def _archived(self, run: Run) -> list[bytes] | None:
        payloads = payloads_of(run)
        if payloads is None:
            self.env.drop("malformed body")
        return payloads

    def _landed(self, below: int) -> None:
        before, self.flight = self.flight, [run for run in self.flight if run.next > below]
        if len(self.flight) < len(before):
            self.wake_at(self.env.now)

    # -- membership and time

    def down_event(self, event: Event) -> None:
        if isinstance(event, Leave):
            self.env.record("leave", reason="asked")
            self.leaving = True
            self.leave_at = self.env.now + self.env.config.leave_timeout
            self.wake_at(self.leave_at)
        else:
            self.below.append(event)

    def timer(self) -> None:
        """Begin a turn for news that came after this layer's part of the last turn, or end a leave that timed out.

        A leave times out when the other members do not decide on a view without this member in time."""
        self.wake = NEVER if self.stopped else self.leave_at
        if self.wake <= self.env.now:
            self.wake = self.leave_at = NEVER
            self.stopped = True
            self.env.count("leave timed out")
            self.ending = Excluded(
                "left", "the other members installed no view without this member within leave_timeout"
            )
            self.below.append(Gone())  # so that UNICAST2 reports the unacknowledged messages to single members

    def up_event(self, event: Event) -> None:
        if isinstance(event, Stability):
            if event.slowest or event.consumed > self.consumed:
                self.consumed, self.slowest = event.consumed, event.slowest
            if event.delivered > self.stable:
                self.stable = event.delivered
                self.wake_at(self.env.now)
            if self.waits_for_all:
                self._landed(event.delivered)
            return
        if isinstance(event, Freed):
            self.freed_bytes = event.total_bytes
            self.wake_at(self.env.now)
            return
        if isinstance(event, FreedTo):
            self._freed_to(event)
            return
        if isinstance(event, Hold | Release):
            return
        if isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Excluded):
            if not self.stopped:  # a leave that timed out has stopped it before
                self.stopped, self.ending = True, event
                self.wake_at(self.env.now)
            return
        elif isinstance(event, Blocked | Unblocked):
            self._record_block(event)
        elif isinstance(event, Gap):
            self._announce(event)
        self.above.append(event)
        if isinstance(event, NewView) and not event.with_state:
            self.above += event.gaps

    def _record_block(self, event: Blocked | Unblocked) -> None:
        """Record a block.  The record is written here, and not where the event begins, because here all deliveries
        before the event are recorded.  A process without a view has delivered nothing that could stop."""
        if self.env.view is None:
            return
        if isinstance(event, Blocked):
            self.env.record("block", reason="no majority", detail=event.reason)
        else:
            self.env.record("unblock")

    def _freed_to(self, event: FreedTo) -> None:
        opened = self.unicasts.get(event.to)
        if opened is None:
            return
        if event.total_bytes is None:
            opened.cut_bytes = opened.freed_bytes = 0
        else:
            opened.freed_bytes = event.total_bytes
        self.wake_at(self.env.now)

    def _stop(self) -> None:
        """End the member: write the last records, and give the application its last events."""
        event, self.ending, self.wake = self.ending, None, NEVER
        if event is None:
            return
        self._tell_reached()  # first, so that a `send` that waits for a delivered message does not raise Unknown
        env = self.env
        for run in self.flight:
            env.record("undelivered", **run.columns())
        env.record_drops()
        env.record("stop", reason=event.reason, detail=event.detail, gauges=env.gauges())
        env.journaling = False  # `stop` is the last record
        for dest, opened in self.unicasts.items():
            if opened.payloads:  # accepted between the end and its event: no other layer knows these
                self.above.append(Undelivered(dest, range(opened.first, opened.first + len(opened.payloads))))
        self.above.append(event)

    def _install(self, event: NewView) -> None:
        self.env.view = event.view.id
        self.env.totals.views += 1
        self.position = 0
        self.slowest = ()
        if not event.is_new:  # all members that came along have delivered all messages of the old view
            self.stable = max(self.stable, self.delivered)
        self.env.record("view", **columns_of_view(event))
        for gap in event.gaps:
            self._announce(gap)
        for gap in event.without_state or ():
            self._skip_own(gap)
        self._forget_outsiders(event.view.members)

    def _announce(self, gap: Gap) -> None:
        """Other members delivered these messages before a merge, and this one never delivers them."""
        origin = gap.origin
        self.env.totals.missed += gap.count
        columns = {"origin": origin.name, "origin_incarnation": origin.incarnation}
        self.env.record("gap", **columns, first=gap.first, count=gap.count, members=gap.subgroup)
        self._skip_own(gap)

    def _skip_own(self, gap: Gap) -> None:
        """If the messages of `gap` are own ones, no delivery of theirs is awaited any more."""
        if gap.origin == self.env.me:
            missed = [run for run in self.flight if self.delivered < run.next <= gap.next]  # others came here, too
            gap.size = sum([max(len(run.body), self.run_min) for run in missed])
            self.delivered = max(self.delivered, gap.next)
            self.wake_at(self.env.now)
            if not self.waits_for_all:
                self._landed(self.delivered)

    def _forget_outsiders(self, members: tuple[Address, ...]) -> None:
        """Forget receivers outside the view, above a limit.  A forgotten receiver gets higher numbers when it
        returns."""
        if len(self.unicasts) > self.env.config.unicast_peers_max:
            outside = [to for to, opened in self.unicasts.items() if to not in members and not opened.payloads]
            for to in outside[: len(self.unicasts) - self.env.config.unicast_peers_max]:
                self.unused = max(self.unused, self.unicasts.pop(to).first)

    def gauges(self) -> dict[str, int]:
        unsent = len(self.open.payloads) + sum(len(opened.payloads) for opened in self.unicasts.values())
        return {"unsent": unsent, "in_flight": len(self.flight)}
