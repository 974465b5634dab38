"""Reading: the inbox queues events for the application, and reports consumed messages to the stack.

Messages stay in their runs until the application reaches them.  An event counts as applied, and a run as consumed, when
the application asks for the next event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, repeat
from operator import length_hint
from typing import ClassVar, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, StateLost, UsageError, WouldDeadlock
from pygroups.core.limits import MILLISECOND, RUN_COST, Config
from pygroups.core.run import payloads_of
from pygroups.core.tables import Tables
from pygroups.core.top import Delivered

from ..channel_events import Event, Gap, Left, MergeView, Message, View
from ..sending.line import WaitingLine
from ..state.loading import Loading
from ..state.spill import Overflow, in_memory
from ..state.states import StateRequest, States
from .consumption import Consumption
from .deadlock import ANSWERING, READS, ReaderSends, never_read, unread_behind
from .items import Item, Opened, Raised, awaited, outlives_a_state, with_its_state
from .pace import Pace

SLICE_MESSAGES: Final = 512  # iteration checks the clock at least once in so many messages
BATCH_MESSAGES: Final = 8_192  # the most messages in a batch
BATCH_BYTES: Final = 512 << 10  # a batch ends with the run that reaches this size: a longer one falls out of the caches
BATCH_TARGET: Final = 200 * MILLISECOND  # batches shrink if the program blocks the loop longer than this with a batch


class Inbox:
    """The one ordered stream of a channel's events, from the stack to the task that reads it."""

    gives_events = True

    tables: ClassVar[Tables] = {
        "consumption._had_multicasts": "members",
        "consumption._had_unicasts": "members",
        "consumption._multicasts": "peers",
        "consumption._own_unread": "window_runs",
        "consumption._own_unread[]": "fixed",
        "consumption._unicasts": "peers",
        "guarded": "calls",
        "opened.payloads": "run_messages",
        "opened.payloads[]": "payload_max",
        "own_read.waiting": "calls",
        "own_read.waiting[]": "fixed",
        "queue": "unread",
        "queue[].joined": "members_max",
        "queue[].left": "members_max",
        "queue[].members": "members_max",
        "queue[].transitional": "members_max",
        "read": "unread",
        "reader_reads._seen": "fixed",
        "reader_reads._since": "calls",
        "reader_reads._since[]": "fixed",
        "reader_sends._seen": "fixed",
        "reader_sends._since": "calls",
        "reader_sends._since[]": "fixed",
    }

    def __init__(
        self,
        me: Address,
        states: States,
        config: Config,
        schedule: Callable[[], None],
        later: Callable[[], None],
        drop: Callable[[str], None],
        now: Callable[[], int],
        lags: Callable[[], bool] = lambda: False,
    ) -> None:
        """`schedule` makes a turn of the member due now, and `later` one within some time.  `lags`: whether the reader
        now lets the loop run first, as a reader that has more to do would."""
        self.me = me
        self.states = states
        self.queue_max = config.queue_max
        quantum = min(config.stable_bytes, config.window // 4)  # as STABLE, which votes at once for so many bytes
        self.consumption = Consumption(me, schedule, later, config.run_bytes_min, quantum)
        self.drop = drop
        self.lags = lags
        self.own_read = WaitingLine()
        self.queue: deque[Item] = deque()
        self.queue_bytes = 0  # of runs
        self.began = False  # the application has received a view
        self.stream = object()  # the same in all incarnations of a channel
        self.arrival: asyncio.Future[None] | None = None  # the reader waits for the next item
        self.reader: asyncio.Task[object] | None = None  # the task that read last
        self.reading = False
        self.events = Pace(now, SLICE_MESSAGES)
        self.batches = Pace(now, BATCH_MESSAGES, BATCH_TARGET)
        self.loop_ran = True  # since the application got its last batch, or before it can get the next one
        self.overflow = Overflow(config)  # messages behind a state that is not set yet
        self.opened: Opened | None = None  # the run whose messages the application is reading
        self.giving: Iterator[bytes] = iter(())  # the unread payloads of the last slice
        self.read: list[Delivered] = []  # runs with the application, which has not asked for the next event yet
        self.generous = 0  # the number of reasons for which unread messages count as consumed now
        self.guarded: list[asyncio.Future[None]] = []  # futures of the sends of the reading task itself
        self.reader_sends = ReaderSends()  # of the sends of tasks that it started
        self.reader_reads = ReaderSends()  # of the sends until a read, in the reading task or its tasks, or before all
        self.ended = False  # the application has read the last event
        self.why_ended: BaseException | None = None  # raised after the last event; None: iteration ends

    # -- from the stack

    def put(self, item: Item) -> None:
        """Queue `item` for the application."""
        if type(item) is Delivered:
            waits = self.states.loading is not None and self.states.is_coming
            if waits:
                item = self.overflow.kept(item, self.queue_bytes)
            self.queue_bytes += in_memory(item) if waits else len(item.run.body)
            if item.run.origin == self.me:
                self.consumption.arrived(item)
            if self.generous or waits:
                self._consume_unread(item)
        self.queue.append(item)
        if self.arrival is not None and not self.arrival.done():
            self.arrival.set_result(None)

    def begin_again(self, loading: Loading, view: View, gaps: list[Gap]) -> None:
        """Wait for a state at the start of `view`.  `gaps` follow the view if the state does not come.

        The state comes before the events that this member holds while it waits, also for a state of an earlier view.
        A state that replaces another one, after a merge, comes after the events before the merge.
        """
        at = awaited(self.queue)
        if at is not None:
            self.queue[at] = loading
        else:
            self.queue.insert(len(self.queue) if loading.resets else 0, loading)
        self.put(msgspec.structs.replace(view, reset=False) if isinstance(view, MergeView) else view)
        for gap in gaps:
            self.put(gap)

    def want(self, wanted: StateRequest) -> None:
        """Ask for the state before its view.  The view is queued if this member had no state until now: the state for
        the others then has the messages that this member held."""
        self.put(wanted)
        view = wanted.event.view
        at = next((n for n, item in enumerate(self.queue) if isinstance(item, View) and item.id == view), None)
        if at is not None:
            self.queue.insert(at, self.queue.pop())

    def forget_state(self) -> None:
        """Give up the state that this member waits for, and all messages behind it."""
        loading = self.states.loading
        if loading is None or loading.ready.is_set():
            return
        items = list(self.queue)
        at = awaited(items)
        if at is not None:
            self._replace([*items[:at], *[item for item in items[at:] if outlives_a_state(item)]])
        self.states.forget()

    def continues(self, before: Inbox) -> None:
        """The program reads the events of `before`, an earlier incarnation, and then the events of this one."""
        self.stream, self.reader = before.stream, before.reader

    def forked(self, why: str) -> None:
        """This process is a forked child: a read here raises ChannelClosed."""
        self.queue.clear()
        self.opened = None
        self.queue.append(Raised(ChannelClosed(why), final=True))

    def _replace(self, items: list[Item]) -> None:
        """Queue `items` in place of all items."""
        self.overflow.stop()
        self.queue = deque(items)
        self.queue_bytes = sum([in_memory(item) for item in items if isinstance(item, Delivered)])

    # -- to the application

    async def next(self, *, whole: bool) -> Iterator[Event]:
        """The next events, at least one: some of one run, or with `whole` all queued events up to a view.

        The event loop runs other tasks every few milliseconds, however many events are queued.  After the last event
        this raises StopAsyncIteration, or the error that ended the channel.
        """
        if self.reading:
            raise UsageError("another task reads this channel's events: let one task read them and pass them on")
        self._applied()
        if self.reader is not (task := asyncio.current_task()):
            self.reader = task
            self.reader_reads = ReaderSends()  # another task reads now, so earlier sends do not block the reads
            READS.set(self.stream)
        self.reading = True
        pace = self.batches if whole else self.events
        try:
            await self._let_the_loop_run(pace, whole)
            while not self.ended:
                while not self.queue and self.opened is None:
                    await self._wait()
                    pace.ran()
                    if self.lags():
                        await asyncio.sleep(0)
                opened = await self._open(pace, whole)
                if opened is not None:
                    return opened
        finally:
            self.reading = False
        raise self.why_ended or StopAsyncIteration

    async def _let_the_loop_run(self, pace: Pace, whole: bool) -> None:
        """Let the event loop run other tasks, if it has not run them for a while.

        If the loop ran after the last batch, the elapsed time is not a time for which the program blocked the loop.
        """
        if whole and self.loop_ran:
            pace.let_run()
        elif pace.adapt() or self.lags():
            await asyncio.sleep(0)
            pace.ran()

    @property
    def has_unread(self) -> bool:
        """Whether the application has not read all queued events."""
        return bool(self.queue or self.read or self.opened)

    @property
    def has_messages(self) -> bool:
        """Whether a message is queued."""
        return any(isinstance(item, Delivered) for item in self.queue)

    def due_requests(self) -> list[StateRequest]:
        """The requests for the state that no unread message precedes: the program has the state that they ask for."""
        found: list[StateRequest] = []
        if self.opened is not None or length_hint(self.giving):
            return found
        for item in self.queue:
            if isinstance(item, Delivered | Loading):
                break
            if isinstance(item, StateRequest):
                found.append(item)
        return found

    @property
    def progress(self) -> tuple[int, int]:
        """A value that changes whenever the application reads a further event."""
        return max(self.events.given_at, self.batches.given_at), length_hint(self.giving)

    async def _wait(self) -> None:
        self.arrival = asyncio.get_running_loop().create_future()
        try:
            await self.arrival
        finally:
            self.arrival = None

    async def _open(self, pace: Pace, whole: bool) -> Iterator[Event] | None:
        """The events of the first item.  The item leaves the queue after the last await, so a cancellation loses
        nothing."""
        if self.opened is not None or isinstance(self.queue[0], Delivered):
            return self._batch(pace) if whole else self._slice(pace)
        item = self.queue[0]
        error = None
        if isinstance(item, StateRequest):
            with self._generosity():  # get_state() may take long, and the program reads nothing during that time
                error = await self.states.provide(item)
        elif isinstance(item, Loading):
            error = await self._load(item)
        if self.queue and self.queue[0] is item:
            self.queue.popleft()
        if error is not None:
            raise error
        if isinstance(item, Raised):
            if item.final:
                self.ended, self.why_ended = True, item.error
            raise item.error
        self.ended = isinstance(item, Left)
        self.began = self.began or isinstance(item, View)
        return iter((item,)) if isinstance(item, Event) else None

    def _slice(self, pace: Pace) -> Iterator[Event] | None:
        """The next messages of one run."""
        pace.given = 0
        return self._take(pace)

    def _take(self, pace: Pace) -> Iterator[Event] | None:
        """As many messages of the first run as the pace allows; None for a run without messages."""
        if self.opened is not None:
            item, payloads, at = self.opened
        else:
            item, at = self._popped(), 0
            found = payloads_of(item.run)
            if found is None:
                self.drop("malformed body")
                self.read.append(item)
                return None
            payloads = found
        run, rest, room = item.run, len(payloads) - at, pace.allowed - pace.given
        if self.own_read.waiting and self._is_own(item):  # the next slice then tells that this one was read
            wanted = self.own_read.waiting[0][0] + 1 - run.first
            room = min(room, wanted - at) if wanted > at else room
        if room < rest:
            self.opened = Opened(item, payloads, at + room)
            payloads = payloads[at : at + room]
            pace.given += room
        else:
            self.opened = None
            self.read.append(item)
            payloads = payloads[at:] if at else payloads
            pace.given += rest
        self.giving = iter(payloads)
        positions: Iterator[int | None] = count(item.position + at) if item.position >= 0 else repeat(None)
        origin = run.origin
        assert origin is not None
        return map(Message, repeat(origin), self.giving, count(run.first + at), repeat(item.view), positions)

    def _popped(self) -> Delivered:
        item = self.queue.popleft()
        assert type(item) is Delivered
        body: object = item.run.body
        if type(body) is bytes:  # as in_memory(), without a call for each run
            self.queue_bytes -= len(body)
        return item

    def _batch(self, pace: Pace) -> Iterator[Event] | None:
        """The messages of all runs that are queued, up to the first item of another kind."""
        messages: list[Event] = []
        pace.given = 0
        rest = self.queue_bytes - BATCH_BYTES
        while pace.given < pace.allowed and self.queue_bytes > rest:
            if self.opened is None and not (self.queue and type(self.queue[0]) is Delivered):
                break
            messages.extend(self._take(pace) or ())
        if not messages:
            return None
        self.loop_ran = not self.queue and self.opened is None  # the next batch comes by a turn, and so by the loop
        if not self.loop_ran:
            asyncio.get_running_loop().call_soon(self._loop_runs)
        return iter(messages)

    def _loop_runs(self) -> None:
        self.loop_ran = True

    async def _load(self, loading: Loading) -> StateLost | None:
        """Wait until the state is set, before any event is given.  The transfer may restart with another provider.

        Each read raises the error of set_state(), because no event can follow a state that was not set.
        """
        loading.reached.set()
        with self._generosity():
            try:
                await self.states.load(loading)
            except StateLost as lost:
                self.overflow.stop()
                return lost
        if not loading.superseded and not loading.none:
            items, replaced = with_its_state(self.me, self.began, loading, self.queue)
            for item in replaced:
                if isinstance(item, Delivered):
                    self.consumption.consume(item)
                    if self._is_own(item):  # the program has it with the state
                        self.own_read.reach(item.run.next)
            self._replace(items)
        return None

    # -- consumption

    @property
    def _is_over_full(self) -> bool:
        """Whether the queue takes more than `queue_max`, the cost of each item included."""
        return self.queue_bytes + RUN_COST * len(self.queue) > self.queue_max

    def _applied(self) -> None:
        """The application asks for the next event, so it has applied all earlier ones."""
        me, read = self.me, self.read
        for item in read:
            self.consumption.consume(item)
            if item.run.origin == me and item.position >= 0:
                self.own_read.reach(item.run.next)
        read.clear()
        if self.opened is not None and self._is_own(self.opened.item):
            self.own_read.reach(self.opened.item.run.first + self.opened.at)

    def _is_own(self, item: Delivered) -> bool:
        """Whether the run is a multicast of this member."""
        return item.position >= 0 and item.run.origin == self.me

    def _consume_unread(self, item: Delivered) -> None:
        if not self._is_over_full:
            self.consumption.consume(item)
        elif self.guarded:
            for waiting in self.guarded:
                if not waiting.done():
                    waiting.set_exception(unread_behind(self.queue_max))

    @contextmanager
    def _generosity(self) -> Iterator[None]:
        """Within this context unread messages count as consumed, up to `queue_max`, so they fill no sender's window."""
        self.be_generous()
        try:
            yield
        finally:
            self.generous -= 1

    def be_generous(self) -> None:
        """From now on unread messages count as consumed."""
        self.generous += 1
        for item in self.queue:
            if isinstance(item, Delivered) and not self._is_over_full:
                self.consumption.consume(item)

    @contextmanager
    def guard(self, waiting: asyncio.Future[None]) -> Iterator[None]:
        """Guard a task that waits in `send`.  While the reading task waits, unread messages count as consumed."""
        self.consumption.senders += 1
        try:
            with self._guarded(waiting):
                yield
        finally:
            self.consumption.senders -= 1

    @contextmanager
    def _guarded(self, waiting: asyncio.Future[None]) -> Iterator[None]:
        if asyncio.current_task() is not self.reader:
            if READS.get() is self.stream:  # the reading task started this task, and perhaps waits for it
                with self.reader_sends.noted(waiting, self.events.now(), WouldDeadlock(ANSWERING)):
                    yield
            else:
                yield
            return
        if self._is_over_full:
            raise unread_behind(self.queue_max)
        self.guarded.append(waiting)
        try:
            with self._generosity():
                for item in self.read:  # the events that the application is handling count as consumed too
                    self.consumption.consume(item)
                if self.opened is not None:
                    self.consumption.consume(self.opened.item)
                yield
        finally:
            self.guarded.remove(waiting)

    @property
    def own_read_bytes(self) -> int:
        return self.consumption.own_read

    @property
    def own_unread_bytes(self) -> int:
        return self.consumption.own_unread_bytes()

    @contextmanager
    def guard_read(self, waiting: asyncio.Future[None], number: int) -> Iterator[None]:
        """Guard a task that waits until own multicast `number` is read, if the reading task may wait for that task, or
        if no task reads."""
        if self.reader in (None, asyncio.current_task()) or READS.get() is self.stream:
            with self.reader_reads.noted(waiting, self.events.now(), never_read(number)):
                yield
        else:
            yield

    def end_deadlocks(self, now: int) -> None:
        """Raise WouldDeadlock or Unknown in the sends for which the reading task seems to wait, while no task reads."""
        blocked = self.has_unread and not self.reading
        self.reader_sends.end(now, self.progress, blocked=blocked)
        self.reader_reads.end(now, self.progress, blocked=blocked)


class NoInbox(Inbox):
    """The inbox of a program that only sends: it keeps no events, and every message counts as read."""

    gives_events = False

    def put(self, item: Item) -> None:
        if isinstance(item, Delivered):
            if item.run.origin == self.me:
                self.consumption.arrived(item)
            self.consumption.consume(item)

    async def next(self, *, whole: bool) -> Iterator[Event]:
        raise UsageError("this channel keeps no events, because it was opened with events='none': leave the option out")
