"""The numbered streams of one view at one member: runs are taken in any order and handed up in order, once, without
holes; the flush stops the streams and fetches the missing runs up to the cut.

A layer that numbers multicasts holds one `ViewStreams` and brings the heads.  Note: docs/layers/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from pygroups.core.address import Address
from pygroups.core.events import Fetch, Held, HeldQuery, Served, Stability
from pygroups.core.layer import NEVER, Layer
from pygroups.core.run import Run
from pygroups.core.services import PRIMARY
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId

from .answers import Answers
from .holes import HoleRequests, Ranges, Request
from .stream import Stream


class Previous(NamedTuple):
    """The streams of the view before, for its members that were not needed for the decision and lack runs."""

    view: ViewId
    by_name: dict[Address, Stream]
    members: dict[Address, None]
    answers: Answers

    @classmethod
    def tables(cls) -> Tables:
        """The rows of a former view, which may have more members than the present one."""
        return {
            "by_name": "members_max",
            "members": "members_max",
            **under("answers", {**Answers.tables, "spent": "members_max"}),
        }


class ViewStreams:
    """The streams of the installed view.  Runs to hand up and requests to send go into the layer's lists.

    A stream is named by the member that multicasts in it.  Each run that is taken has the layer's head on it, as it
    was multicast; it is kept so, to be sent again, and handed up without that head, with its place.
    """

    __slots__ = (
        "answers",
        "by_name",
        "future",
        "future_bytes",
        "holes",
        "layer",
        "own",
        "previous",
        "stopped",
        "view",
    )

    tables: ClassVar[Tables] = {
        "by_name": "members",
        "future": "future_runs_max",
        **under("answers", Answers.tables),
        **under("by_name[]", Stream.tables),
        **under("holes", HoleRequests.tables),
        **under("own", Stream.tables),
        **under("previous", Previous.tables()),
        **under("previous.by_name[]", Stream.tables),
    }

    def __init__(self, layer: Layer, request: Request) -> None:
        self.layer = layer
        self.view: ViewId | None = None
        self.by_name: dict[Address, Stream] = {}
        self.own = Stream()  # this member's multicasts, if it has a stream in the view
        self.stopped = False  # the view is about to end: only fetched runs are taken
        self.future: list[Run] = []  # of views that are not installed here yet, heads and all
        self.future_bytes = 0
        self.holes = HoleRequests(layer, request)
        self.answers = Answers(layer)
        self.previous: Previous | None = None  # where a majority decides a view: until all of its members have it

    # -- runs

    def number(self, run: Run) -> None:
        """Keep and hand up the next run of the own stream, which was given the number `own.next`."""
        assert not self.stopped, "a multicast of a view that is about to end"
        own, me = self.own, self.layer.env.me
        seq = own.next
        own.append(run)
        self.layer.above.append(run.placed(me, seq))

    def take(self, view: ViewId, name: Address, seq: int, run: Run) -> Run | None:
        """Number `seq` of the stream `name` came, from the member that multicast it or from any other.  Returns the run
        to hand up behind those in `above`, if the run is the next one."""
        stream = self.by_name.get(name)
        if stream is None or view != self.view or run.src not in self.holes.members:
            stream = self._find_of_member(view, name, run)  # of another view, or of no member
            if stream is None:
                return None
        if run.dest is not None:  # sent again, by any holder: from here on it is as its first sender multicast it
            run = run.readdressed(name, None)
        if seq == stream.next == stream.seen and seq < stream.limit:
            stream.append(run)
            if run.origin is not None:
                return run.placed(name, seq)
            self._without_payload()
            return None
        self._take_other(name, stream, seq, run)
        return None

    def _take_other(self, name: Address, stream: Stream, seq: int, run: Run) -> None:
        """A run that is not simply the next one: it came twice, too late or early."""
        env = self.layer.env
        if stream.has(seq):
            env.drop("repeated run")
        elif seq >= stream.limit:
            env.drop("run after the stop" if self.stopped else "run of another member in the own stream")
        elif seq >= stream.next + env.config.nakack_early_max:
            stream.hear_of(seq + 1)
            self.holes.watch(stream)
            env.drop("run too far ahead")  # asked for when its turn comes
        else:
            stream.put(seq, run)
            self._advance(name, stream)

    def find(self, view: ViewId, name: Address, run: Run) -> Stream | None:
        """The stream `name` of the view that is installed; otherwise None, and `run` is kept for its view or dropped.

        `run` arrived and names that stream of that view: a run of the stream, or any message about the stream.
        """
        if view == self.view:
            stream = self.by_name.get(name)
            if stream is None:
                self.layer.env.drop("stream of no member")
            return stream
        env = self.layer.env
        if self.view is not None and view < self.view:
            env.drop("old view")
        elif self.view is not None and run.src not in self.holes.members:
            env.drop("later view of a stranger")  # if that view is ever installed here, the run is asked for
        elif self._has_room_for_future(run):
            self.future.append(run)
            self.future_bytes += len(run.body)
        else:
            env.drop("too many runs of a later view")
        return None

    def _find_of_member(self, view: ViewId, name: Address, run: Run) -> Stream | None:
        """As `find`.  A run of a process outside the view, which may know the view, is dropped."""
        stream = self.find(view, name, run)
        if stream is not None and run.src not in self.holes.members:
            self.layer.env.drop("run of no member")
            return None
        return stream

    def _has_room_for_future(self, run: Run) -> bool:
        config = self.layer.env.config
        fits = self.future_bytes + len(run.body) <= config.future_bytes
        return fits and len(self.future) < config.future_runs_max

    def _without_payload(self) -> None:
        """A numbered run has nothing for the layers above."""
        self.layer.env.count("runs without payload")

    def _advance(self, name: Address, stream: Stream) -> None:
        """Hand up the runs that are in order now, and request the missing runs."""
        first = stream.next
        for seq, run in enumerate(stream.take(stream.limit), first):
            if run.origin is not None:
                self.layer.above.append(run.placed(name, seq))
            else:
                self._without_payload()
        if stream.next > first:
            stream.progressed = True
            stream.anew(self.layer.env.config.nakack_period)
        fetch = stream.fetch
        if fetch is not None and stream.next >= fetch.high:
            stream.fetch = None
            self.layer.above.append(Served(name, fetch.high))
        if stream.asked and stream.asked <= stream.next:
            self.holes.ask_for_holes(name, stream, stream.next)  # all requested runs came: go on at once
        self.holes.watch(stream)

    # -- reports of other members

    def announced(self, view: ViewId, name: Address, upper: int, run: Run) -> None:
        """`run` reports that every number of the stream `name` below `upper` was multicast, a period ago or longer."""
        stream = self._find_of_member(view, name, run)
        if stream is not None and upper > stream.seen and not self.stopped:
            stream.announced(upper)
            if stream.check_at == NEVER:
                self.holes.ask_for_holes(name, stream, stream.next)
            self.holes.watch(stream)

    def requested(self, view: ViewId, name: Address, ranges: Ranges, run: Run) -> None:
        """`run` asks for these ranges of the stream `name`."""
        previous = self.previous
        if previous is not None and view == previous.view:
            if run.src not in previous.members:
                self.layer.env.drop("request of no member")
            elif name in previous.by_name:
                previous.answers.answer(name, previous.by_name[name], ranges, run.src)
            return
        stream = self.find(view, name, run)
        if stream is None:
            return
        if run.src in self.holes.members:
            self.answers.answer(name, stream, ranges, run.src)
        else:
            self.layer.env.drop("request of no member")

    def _all_answers(self) -> tuple[Answers, ...]:
        return (self.answers,) if self.previous is None else (self.answers, self.previous.answers)

    def answer_waits(self, asker: Address, head: object) -> None:
        """An answer waits in the reliable lane to `asker`."""
        for answers in self._all_answers():
            answers.waits(asker, head)

    def answers_arrived(self, asker: Address, heads: Iterable[object]) -> None:
        """`asker` has these answers."""
        heads = list(heads)
        for answers in self._all_answers():
            answers.arrived(asker, heads)

    # -- requests and reports of the layers above

    def held(self, query: HeldQuery) -> None:
        """Answer how far each stream is held without a hole, and how far runs of it are known to exist."""
        held = {name: stream.next for name, stream in self.by_name.items()}
        seen = {name: stream.seen for name, stream in self.by_name.items()}
        self.layer.above.append(Held(query.asker, held, seen))

    def stability(self, event: Stability) -> None:
        """Forget the runs that every member has delivered; request the runs that some member has and this one lacks."""
        if not self.by_name:
            return  # this member was excluded in the same turn
        for name, position in event.purge.items():
            self.by_name[name].forget(position)
        for name, position in event.seen.items():
            stream = self.by_name[name]
            if stream.seen < position <= stream.limit and not self.stopped:
                stream.hear_of(position)
                self.holes.watch(stream)

    def fetch(self, event: Fetch) -> None:
        """Fetch the runs up to a cut, at once, in place of the runs that the flush wanted of this stream before."""
        stream = self.by_name.get(event.stream)
        if stream is None:
            return  # this member left in the same turn in which it was asked to fetch
        stream.begin_fetch(event, stopped=self.stopped, period=self.layer.env.config.nakack_period)
        self._advance(event.stream, stream)
        stream.progressed = False
        if stream.fetch is not None:
            self.holes.check(event.stream, stream)

    # -- membership and time

    def stop(self) -> None:
        """The view is about to end: this member answers for the runs that it holds now, and takes only fetched runs."""
        self.stopped = True
        for stream in self.by_name.values():
            stream.stop()

    def begin(self, view: ViewId | None, members: tuple[Address, ...], names: Iterable[Address]) -> None:
        """Forget all streams; those of `names` begin at 0 in `view`, of `members`.  Where a majority decides a view,
        the streams of the view before are kept until `all_installed`."""
        self.previous = None
        if PRIMARY in self.layer.env.services and self.view is not None and members:
            self.previous = Previous(self.view, self.by_name, self.holes.members, self.answers)
            self.answers = Answers(self.layer)
        self.view = view
        self.by_name = {name: Stream() for name in names}
        self.own = self.by_name.get(self.layer.env.me) or Stream()
        self.own.limit = 0  # no other member sends in it
        self.stopped = False
        self.holes.begin(view, members)
        self.answers.begin()

    def all_installed(self, view: ViewId) -> None:
        """All members have `view`: no member fetches runs of the view before."""
        if view == self.view:
            self.previous = None

    def take_future(self) -> list[Run]:
        """Runs of a later view that were kept, for the layer to look at again; none is kept here any more."""
        future, self.future, self.future_bytes = self.future, [], 0
        return future

    def check_holes(self) -> None:
        """Look at the holes whose check is due now."""
        now = self.layer.env.now
        for name, stream in self.by_name.items():
            if stream.check_at <= now:
                self.holes.check(name, stream)

    def next_check(self) -> int:
        """When check_holes() is due next; NEVER while nothing is missing."""
        return min([stream.check_at for stream in self.by_name.values()], default=NEVER)

    def gauges(self) -> dict[str, int]:
        """Counts of runs and fetches in the streams, by name of the gauge."""
        streams = [*self.by_name.values(), *(self.previous.by_name.values() if self.previous is not None else ())]
        return {
            "stored": sum(stream.held for stream in streams),
            "early": sum(stream.early for stream in streams),
            "future": len(self.future),
            "fetching": sum(stream.fetch is not None for stream in streams),
        }
