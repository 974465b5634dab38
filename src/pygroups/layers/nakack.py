"""NAKACK: the multicasts of each member of a view arrive in the order sent, once, without holes; a receiver asks for
what it misses, and any member that has it may answer.

Every member numbers its multicasts, from 0 in each view, and keeps everybody's until all have delivered them.
Note: docs/layers/nakack.md; seed 002.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import (
    Event,
    Excluded,
    Fetch,
    Fetching,
    Held,
    HeldQuery,
    NewView,
    Served,
    Stability,
    Stop,
    Suspect,
    Unsuspect,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import XMIT_RANGES_MAX
from pygroups.core.run import Loose, Run
from pygroups.core.view import ViewId

from ._stream import FETCH_TRIES, UNLIMITED, Answers, Stream

Seq = Annotated[int, Meta(ge=0, le=UNLIMITED)]
Ranges = Annotated[tuple[tuple[Seq, Seq], ...], Meta(max_length=XMIT_RANGES_MAX)]


class Data(msgspec.Struct, array_like=True, tag=60):
    """On a run: its place.  A run that is sent again has the place it had."""

    view: ViewId  # streams begin anew in each view: the same number of another view is another run
    stream: Address  # the member whose stream it is: it multicast the run, and need not have written it
    seq: Seq  # from 0 in each view


class XmitReq(msgspec.Struct, Loose, array_like=True, tag=61):
    """To a member that may have them: send me these runs of `stream` again.  It repeats itself: on the reliable lane
    each repetition would wait, arrive and be answered."""

    view: ViewId
    stream: Address
    ranges: Ranges  # half-open and ascending


class HighestSeq(msgspec.Struct, array_like=True, tag=62):
    """A member that has fallen idle to all: nothing after its last run would show them that they lost it."""

    view: ViewId
    next: Seq  # of the sender's own stream: everything below was sent at least a period ago


class Nakack(Layer):
    """See the module.  As a layer with numbered streams it answers HeldQuery, Fetch and Stability."""

    __slots__ = ("announce_at", "announce_pause", "answers", "future", "own", "stopped", "streams", "suspects", "view")

    needs: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STREAMS", "FIFO_MULTICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, XmitReq, HighestSeq)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: ViewId | None = None
        self.streams: dict[Address, Stream] = {}  # of the view's members, in rank order
        self.own = Stream()
        self.stopped = False  # bound by the flush: of this view only what is fetched
        self.suspects: dict[Address, None] = {}  # they are not asked
        self.future: list[Run] = []  # of views that are not installed here yet
        self.announce_at = NEVER
        self.announce_pause = 0
        self.answers = Answers(env.config.nakack_period)

    # -- sending

    def down(self, run: Run) -> None:
        if run.dest is not None or not run.count:
            self.below.append(run)
            return
        assert self.view is not None, "a multicast before the first view"
        assert not self.stopped, "a multicast of a view that is on its way out"
        env, own = self.env, self.own
        seq = own.next
        sent = run.push(Data(self.view, env.me, seq))
        own.append(sent)
        self.below.append(sent)
        self.above.append(sent.placed(env.me, seq))
        self.announce_pause = env.config.nakack_period * 3 // 2  # heard and answered within two (NAK-I2)
        self.announce_at = env.now + self.announce_pause
        if self.wake > self.announce_at:
            self.wake = self.announce_at

    def _announce(self) -> None:
        """Say how far the own stream goes, ever more seldom; not at all once everybody has everything of it."""
        own, env = self.own, self.env
        if own.held == 0 or self.announce_pause > env.config.announce_max:
            self.announce_at = NEVER
            return
        assert self.view is not None
        self.tell(None, HighestSeq(self.view, own.next))
        self.announce_pause *= 2
        self.announce_at = env.now + self.announce_pause

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Data):
            self.on_data(head, run)
        elif isinstance(head, HighestSeq):
            self.on_highest_seq(head, run)
        elif isinstance(head, XmitReq):
            self.on_xmit_req(head, run)
        else:
            self.above.append(run)

    def on_data(self, data: Data, run: Run) -> None:
        stream = self._stream(data.view, data.stream, run)
        if stream is None:
            return
        if run.dest is not None:  # sent again, by whoever had it; from here on it is what its first sender multicast
            run = run.readdressed(data.stream, None)
        seq = data.seq
        if seq == stream.next == stream.seen and seq < stream.limit:
            stream.append(run)
            self._hand_up(data.stream, seq, run)
        elif stream.has(seq):
            self.env.drop("repeated run")
        elif seq >= stream.limit:
            self.env.drop("run after the stop" if self.stopped else "run in our name")
        elif seq >= stream.next + self.env.config.nakack_early_max:
            stream.hear_of(seq + 1)
            self._watch(stream)
            self.env.drop("run too far ahead")  # it is asked for when its turn comes
        else:
            stream.put(seq, run)
            self._advance(data.stream, stream)

    def _stream(self, view: ViewId, member: Address, run: Run) -> Stream | None:
        """The stream of `member` in the view that is installed; otherwise `run` is kept or dropped, and None."""
        if view == self.view:
            stream = self.streams.get(member)
            if stream is None:
                self.env.drop("stream of no member")
            return stream
        if self.view is not None and view < self.view:
            self.env.drop("old view")
        elif self.view is not None and run.src not in self.streams:
            self.env.drop("later view of a stranger")  # asked for, if it becomes ours; else it would lie here for good
        elif len(self.future) < self.env.config.future_runs_max:
            self.future.append(run)
        else:
            self.env.drop("too many runs of a later view")
        return None

    def _hand_up(self, name: Address, seq: int, run: Run) -> None:
        if run.count:
            self.above.append(run.placed(name, seq))
        else:
            self.env.count("runs without payload")  # numbered, and nothing for those above

    def _advance(self, name: Address, stream: Stream) -> None:
        """Hand up what lies in order now, and see to what is missing."""
        first = stream.next
        for seq, run in enumerate(stream.take(stream.limit), first):
            self._hand_up(name, seq, run)
        if stream.next > first:
            stream.progressed = True
            stream.anew(self.env.config.nakack_period)
        fetch = stream.fetch
        if fetch is not None and stream.next >= fetch.high:
            stream.fetch = None
            self.above.append(Served(name, fetch.high))
        if stream.asked and stream.asked <= stream.next:
            self._ask(name, stream, stream.next)  # all that was asked for came: go on at once
        self._watch(stream)

    # -- asking for what is missing

    def on_highest_seq(self, head: HighestSeq, run: Run) -> None:
        stream = self._stream(head.view, run.src, run)
        if stream is not None and head.next > stream.seen and not self.stopped:
            stream.hear_of(head.next)
            stream.ripe = stream.horizon = head.next
            if stream.check_at == NEVER:
                self._ask(run.src, stream, stream.next)
            self._watch(stream)

    def _watch(self, stream: Stream) -> None:
        """See that holes are looked at, first at once: those that are still there a period later are asked for."""
        if stream.next >= min(stream.wanted, stream.limit):
            stream.check_at = NEVER
        elif stream.check_at == NEVER:
            stream.check_at = self.env.now
            self.wake_at(self.env.now)

    def _check(self, name: Address, stream: Stream) -> None:
        now = self.env.now
        stream.ripe, stream.horizon = stream.horizon, stream.seen
        if stream.fetch is not None:
            if stream.progressed:
                self.below.append(Fetching())
            if not stream.progressed and now >= stream.again_at:  # else the answer is on its way
                self._ask(name, stream, stream.next)
        elif now >= stream.again_at:
            self._ask(name, stream, stream.next)
        else:
            self._ask(name, stream, stream.asked)
        stream.progressed = False
        stream.check_at = now + self.env.config.nakack_period
        self.wake_at(stream.check_at)

    def _ask(self, name: Address, stream: Stream, low: int) -> None:
        """Ask somebody for what is missing from `low` on."""
        config, fetch = self.env.config, stream.fetch
        if fetch is not None:
            ranges = stream.missing(low, fetch.high, UNLIMITED, XMIT_RANGES_MAX)
            self.env.count("fetched to the cut")
        else:
            high = min(stream.ripe, stream.limit, stream.next + config.nakack_early_max)
            ranges = stream.missing(low, high, config.nakack_request_runs, XMIT_RANGES_MAX)
        holder = self._holder(name, stream)
        if not ranges or holder is None or self.view is None:
            return
        if low <= stream.next:
            stream.asked_at(self.env.now, config.nakack_period, config.nakack_backoff_max)
        stream.asked = ranges[-1][1]
        self.tell(holder, XmitReq(self.view, name, tuple(ranges)))
        if self.env.journaling:
            for first, end in ranges:
                self.env.record("retransmit_request", peer=holder, stream=name, low=first, high=end)

    def _holder(self, name: Address, stream: Stream) -> Address | None:
        """Whom to ask: who multicast it, or is known to hold it; later anybody, since all keep a stream."""
        if stream.fetch is not None and stream.tries < FETCH_TRIES:
            return stream.fetch.holder
        if stream.fetch is None and stream.tries == 0 and name not in self.suspects:
            return name
        others = [member for member in self.streams if member != self.env.me and member not in self.suspects]
        return self.env.rng.choice(others) if others else None

    def on_xmit_req(self, req: XmitReq, run: Run) -> None:
        stream = self._stream(req.view, req.stream, run)
        if stream is None:
            return
        if run.src not in self.streams:
            self.env.drop("request of no member")
            return
        floor, end = stream.low, stream.next + self.env.config.nakack_early_max
        for low, high in req.ranges:
            for seq in range(max(low, floor), min(high, end)):
                stored = stream.runs.get(seq)
                if stored is not None and self.answers.may(run.src, req.stream, seq, self.env.now):
                    self._send_again(req.stream, seq, stored, run.src)
            floor = max(floor, high)  # ranges ascend; whoever repeats one is answered once

    def _send_again(self, name: Address, seq: int, stored: Run, asker: Address) -> None:
        self.below.append(stored.readdressed(self.env.me, asker))
        self.env.count("runs sent again")
        if self.env.journaling and stored.origin is not None:
            self.env.record(
                "retransmit",
                origin=stored.origin.name,
                origin_incarnation=stored.origin.incarnation,
                first=stored.first,
                count=stored.count,
                bytes=len(stored.body),
                peer=asker,
                stream=name,
                seq=seq,
            )

    # -- what the layers above ask and tell

    def down_event(self, event: Event) -> None:
        if isinstance(event, Stability):
            self._on_stability(event)
        elif isinstance(event, HeldQuery):
            held = {name: stream.next for name, stream in self.streams.items()}
            seen = {name: stream.seen for name, stream in self.streams.items()}
            self.above.append(Held(event.asker, held, seen))
        elif isinstance(event, Fetch):
            self._on_fetch(event)
        else:
            self.below.append(event)

    def _on_stability(self, event: Stability) -> None:
        if not self.streams:
            return  # this member was put out in the same turn
        for name, position in event.purge.items():
            self.streams[name].forget(position)
        for name, position in event.seen.items():
            stream = self.streams[name]
            if stream.seen < position <= stream.limit and not self.stopped:
                stream.hear_of(position)
                self._watch(stream)

    def _on_fetch(self, event: Fetch) -> None:
        """Get it, at once, in place of what the flush wanted of this stream before."""
        stream = self.streams.get(event.stream)
        if stream is None:
            return  # this member left in the same turn in which it was asked to fetch
        stream.fetch, stream.asked = event, 0
        stream.anew(self.env.config.nakack_period)
        stream.hear_of(event.high)
        if self.stopped:
            stream.limit = max(stream.next, event.high)
        self._advance(event.stream, stream)
        stream.progressed = False
        if stream.fetch is not None:
            self._check(event.stream, stream)

    # -- membership and time

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Suspect):
            self.suspects[event.member] = None
        elif isinstance(event, Unsuspect):
            self.suspects.pop(event.member, None)
        elif isinstance(event, Stop):
            self._stop()
        elif isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Excluded):
            self._begin(())
            self.future = []

    def _stop(self) -> None:
        """What is held now is what this member answers for: nothing more is taken but what is fetched."""
        self.stopped = True
        self.announce_at = NEVER
        for stream in self.streams.values():
            stream.limit, stream.fetch, stream.check_at = stream.next, None, NEVER

    def _install(self, event: NewView) -> None:
        self.view = event.view.id
        self._begin(event.view.members)
        future, self.future = self.future, []
        for run in future:
            self.up(run)

    def _begin(self, members: tuple[Address, ...]) -> None:
        """Forget everything of the old view; the streams of these begin at 0."""
        self.streams = {member: Stream() for member in members}
        self.own = self.streams.get(self.env.me) or Stream()
        self.answers = Answers(self.env.config.nakack_period)
        self.own.limit = 0  # nobody else sends in it
        self.suspects = {member: None for member in members if member in self.suspects}
        self.stopped = False
        self.announce_at = self.wake = NEVER

    def timer(self) -> None:
        now = self.env.now
        for name, stream in self.streams.items():
            if stream.check_at <= now:
                self._check(name, stream)
        if self.announce_at <= now:
            self._announce()
        self.wake = min([self.announce_at, *[stream.check_at for stream in self.streams.values()]])

    def gauges(self) -> dict[str, int]:
        streams = self.streams.values()
        return {
            "stored": sum(stream.held for stream in streams),
            "early": sum(stream.early for stream in streams),
            "future": len(self.future),
            "fetching": sum(stream.fetch is not None for stream in streams),
        }
