"""State transfer for the application: a member gives its state to joiners, and a joiner sets it before any event.

The state is the state at the start of a view.  `get_state` is called when the program has read all events before that
view, so the state contains exactly these events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import ClassVar, Final, Protocol, runtime_checkable

from xxhash import xxh3_64

from pygroups.core.address import Address
from pygroups.core.columns import lack_columns
from pygroups.core.errors import StateLost, UsageError
from pygroups.core.events import Event, Marks, Missing
from pygroups.core.limits import SECOND, TEXT_MAX, Config
from pygroups.core.run_size import RunSize
from pygroups.core.state_events import StateArrived, StateChunk, StateFailed, StateTaken, StateWanted
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId
from pygroups.drivers.member import Timer

from ..channel_events import Gap, View
from ..log import Log
from .loading import Loading, lost, unset
from .snapshots import TooLong, closing, cut, named, one, timed
from .spill import Received

_SIGN: Final = 1 << 63


class State(Protocol):
    """The object for `Channel(state=...)`."""

    async def get_state(self) -> bytes | AsyncIterable[bytes]:
        """The current state: bytes, or an iterator over a snapshot.  The group goes on while the iterator is read."""

    async def set_state(self, data: bytes) -> None:
        """Start with the state `data`.  All later changes come as events."""


@runtime_checkable
class LargeState(Protocol):
    """The object for `Channel(state=...)`, for a state that is too large for the memory."""

    async def get_state(self) -> bytes | AsyncIterable[bytes]:
        """As in State."""

    async def set_state_chunks(self, chunks: AsyncIterator[bytes]) -> None:
        """Start with the state that consists of all `chunks`.  All later changes come as events.

        The channel has received the whole state before this call.  The chunks have up to 1 MiB.
        """


class Recorder(Protocol):
    """The part of a member that state transfer uses."""

    def ask(self, event: Event) -> None: ...
    def losses(self) -> tuple[int, int]:
        """The runs that this member has sent, and those of them that were requested again."""

    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None: ...


class StateRequest:
    """A request for the application's state, for the joiners of a view."""

    def __init__(self, event: StateWanted) -> None:
        self.event = event
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # the state is given, or failed
        self.error: Exception | None = None  # the error of get_state()
        self.asking: asyncio.Task[None] | None = None  # the task that calls get_state()
        self.timer: Timer | None = None

    def over(self) -> None:
        """End the request."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.done.done():
            self.done.set_result(None)


class Giving:
    """A transfer in progress: the number of chunks that each joiner has acknowledged."""

    def __init__(self, joiners: tuple[Address, ...]) -> None:
        self.taken: dict[Address, int] = dict.fromkeys(joiners, 0)
        self.news = asyncio.Event()

    def acknowledged(self, joiner: Address, chunks: int | None) -> None:
        """`joiner` has so many chunks; None: it needs no more."""
        if joiner in self.taken:
            if chunks is None:
                del self.taken[joiner]
            else:
                self.taken[joiner] = chunks
            self.news.set()

    async def room(self, chunks: int) -> None:
        """Wait until the slowest joiner has acknowledged so many chunks."""
        while self.taken and min(self.taken.values()) < chunks:
            self.news.clear()
            await self.news.wait()


class States:
    """Both sides of the transfer, for one channel.  `broke` is called with an error of the application's snapshot."""

    tables: ClassVar[Tables] = {
        "givings": "views",
        "owed": "views",
        "tasks": "views",
        "wanted": "views",
    }

    def __init__(
        self,
        state: State | LargeState | None,
        recorder: Recorder,
        config: Config,
        later: Callable[[float, Callable[[], object]], Timer],
        broke: Callable[[Exception], None],
        log: Log,
    ) -> None:
        self.state = state
        self.recorder = recorder
        self.config = config
        least = min(config.state_chunk_lossy, config.state_chunk)
        self.size = RunSize(least, least, config.state_chunk)  # of a chunk
        self.patience = config.state_timeout / SECOND
        self.later = later
        self.broke = broke
        self.log = log
        self.loading: Loading | None = None
        self.lost: StateLost | None = None  # the state that this member waited for was lost
        self.givings: dict[ViewId, Giving] = {}
        self.owed: dict[tuple[ViewId, Address], None] = {}  # states that are being taken or given, by view and joiner
        self.paid = asyncio.Event()  # one of them has arrived, or is needed no more
        self.stopped = False
        self.wanted: dict[ViewId, StateRequest] = {}
        self.tasks: dict[asyncio.Task[None], None] = {}

    def stop(self) -> None:
        """Stop all transfers from this member."""
        self.stopped = True
        for wanted in list(self.wanted.values()):
            self._close(wanted)
        for task in self.tasks:
            task.cancel()

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Run application code in a task of its own, so that a canceled read does not cancel the code."""
        task = asyncio.get_running_loop().create_task(work, name=f"pygroups {name}")
        self.tasks[task] = None
        task.add_done_callback(lambda done: self.tasks.pop(done, None))
        return task

    # -- giving

    def give_none(self, event: StateWanted) -> None:
        """Tell the joiners that this member has no state, so that they start without one."""
        for joiner in event.joiners:
            self.recorder.ask(StateChunk(event.view, joiner, b"", last=True, none=True))

    def want(self, event: StateWanted) -> StateRequest:
        """Make a request for the state.  The application must reach it and answer it within `state_timeout`."""
        wanted = self.wanted[event.view] = StateRequest(event)
        wanted.timer = self.later(self.patience, lambda: self._late(wanted))
        return wanted

    async def provide(self, wanted: StateRequest) -> Exception | None:
        """Call get_state(), and start the transfer, which runs beside the application.  Returns the error of
        get_state().

        A cancellation ends this wait, and not the call.
        """
        if self.stopped or wanted.done.done():
            return wanted.error
        self.take(wanted)
        await asyncio.shield(wanted.done)
        return wanted.error

    def take(self, wanted: StateRequest) -> None:
        """Call get_state() in a task, unless it was called before."""
        if wanted.asking is None:
            self.owed |= dict.fromkeys((wanted.event.view, joiner) for joiner in wanted.event.joiners)
            wanted.asking = self._start(self._ask(wanted), "takes a state")

    async def _ask(self, wanted: StateRequest) -> None:
        try:
            pieces = await self._snapshot()
        except Exception as error:  # noqa: BLE001 (an error of the application: the read raises it, the joiners get it)
            wanted.error = error
            self._failed(wanted.event, wanted.event.joiners, f"get_state() raised {named(error)}")
            self._close(wanted)
            return
        if self.stopped or wanted.done.done():
            async with closing(pieces):
                return
        self._close(wanted)
        self.givings[wanted.event.view] = Giving(wanted.event.joiners)
        self._start(self._give(wanted.event, pieces), "gives its state")

    async def _snapshot(self) -> AsyncIterator[bytes]:
        assert self.state is not None
        taken: object = self.state.get_state()
        if isinstance(taken, Awaitable):  # otherwise get_state() is a generator function, and `taken` an iterator
            taken = await taken
        if isinstance(taken, bytes | bytearray | memoryview):
            return one(bytes(taken))
        if isinstance(taken, AsyncIterable):
            return aiter(taken)
        raise UsageError(f"get_state() must return bytes or an async iterator of bytes, not {type(taken).__name__}")

    def _late(self, wanted: StateRequest) -> None:
        """The application has not given its state in time, so the joiners need another provider."""
        asking = wanted.asking
        if asking is None:
            reason = f"get_state() was not called, because the program read no events for {self.patience:g} s"
        else:
            reason = f"get_state() did not return within {self.patience:g} s"
        self._failed(wanted.event, wanted.event.joiners, reason)
        self._close(wanted)
        if asking is not None:
            asking.cancel()

    def _close(self, wanted: StateRequest) -> None:
        self.wanted.pop(wanted.event.view, None)
        wanted.over()
        self.paid.set()

    def _failed(self, event: StateWanted, joiners: Iterable[Address], reason: str) -> None:
        """Tell the joiners, and log, that this member gives no state for this view."""
        names = [joiner.name for joiner in joiners]
        if names:
            self.log.warning("this member gives no state to %s: %s", ", ".join(names), reason)
        for joiner in joiners:
            self._pay(event.view, joiner)
            self.recorder.ask(StateFailed(event.view, joiner, reason[:TEXT_MAX]))

    async def _give(self, wanted: StateWanted, pieces: AsyncIterator[bytes]) -> None:
        giving = self.givings[wanted.view]
        try:
            await self._send(wanted, giving, pieces)
        except TooLong:
            late = f"the iterator of get_state() gave no bytes for {self.patience:g} s"
            self._failed(wanted, tuple(giving.taken), late)
        except Exception as error:  # noqa: BLE001 (as in _ask)
            self._failed(wanted, tuple(giving.taken), f"the iterator of get_state() raised {named(error)}")
            self.broke(error)
        finally:
            del self.givings[wanted.view]

    async def _send(self, wanted: StateWanted, giving: Giving, pieces: AsyncIterator[bytes]) -> None:
        sent, size, digest, last = 0, 0, xxh3_64(), b""
        in_time = timed(pieces, self.patience)
        async with closing(pieces), aclosing(in_time), aclosing(cut(in_time, self._chunk_size)) as chunks:
            async for piece in chunks:
                if sent:
                    self._chunk(wanted.view, giving, last)
                last = piece
                sent += 1
                size += len(piece)
                digest.update(piece)
                await giving.room(sent - self.config.state_chunks_ahead)
                if not giving.taken:
                    return  # no joiner needs the state any more
        for joiner in giving.taken:
            self._record_lacks("given", wanted.view, joiner, wanted.lacks)
            self._record("state_get", wanted.view, joiner, wanted.digest, size, digest.intdigest())
            self.recorder.ask(StateChunk(wanted.view, joiner, last, last=True, lacks=wanted.lacks))

    def _chunk_size(self) -> int:
        return self.size.look(*self.recorder.losses())

    def _chunk(self, view: ViewId, giving: Giving, data: bytes) -> None:
        for joiner in giving.taken:
            self.recorder.ask(StateChunk(view, joiner, data, last=False))

    def on_taken(self, event: StateTaken) -> None:
        """A joiner has acknowledged some chunks, or needs no more: it has the state, or has left."""
        if event.chunks is None:
            self._pay(event.view, event.joiner)
        if event.view in self.givings:
            self.givings[event.view].acknowledged(event.joiner, event.chunks)

    def _pay(self, view: ViewId, joiner: Address) -> None:
        self.owed.pop((view, joiner), None)
        self.paid.set()

    async def finish(self, *, reads: bool) -> None:
        """Wait until each joiner has the state that this member gives.  `reads`: the program still reads, so it
        reaches the requests in the queue."""
        while self.owed or (reads and self.wanted):
            self.paid.clear()
            await self.paid.wait()

    # -- taking

    def begin(self, view: View, gaps: list[Gap], digest: Marks, *, resets: bool) -> Loading:
        """Expect a state at the start of `view`, in which the state leaves `gaps`.  The new state replaces an earlier
        state that is not complete yet."""
        before, again, first = self.loading, False, digest
        if before is not None and before.is_complete:
            resets = True  # the application gets both, one after the other
        elif before is not None:
            before.supersede()
            again, resets, first = True, before.resets, before.first
        most = self.config.spill_after if isinstance(self.state, LargeState) else 0
        self.loading = Loading((view, gaps), digest, Received(most), first=first, again=again, resets=resets)
        return self.loading

    def waits(self) -> str | None:
        """A sentence about the state that has not arrived; None if this member waits for none."""
        return None if self.loading is None else self.loading.waits()

    @property
    def is_coming(self) -> bool:
        """Whether this member waits for a state, or sets one."""
        return self.loading is not None and self.loading.error is None

    def forget(self) -> None:
        """Expect no state any more."""
        if self.loading is not None:
            self.loading.supersede()
            self.loading = None

    def on_arrived(self, event: StateArrived) -> None:
        """A chunk of the state has arrived."""
        loading = self.loading
        if loading is None or event.view != loading.view:
            return  # this application keeps no state
        loading.arrived(event)

    async def load(self, loading: Loading) -> None:
        """Wait for the whole state, and call set_state() once.  Raises the error of set_state(), or StateLost.

        A cancellation ends this wait, and not the call.
        """
        await loading.ready.wait()
        await loading.reached.wait()
        if loading.superseded:
            return
        if loading.none:
            if loading.is_lost and loading.error is None:
                loading.error = self.lost = lost(resets=loading.resets)
                self.log.warning("%s", self.lost)
            if self.loading is loading:
                self._record_loss(loading)
                self.loading = None
        elif loading.error is None or loading.setting is not None:
            if loading.setting is None:
                loading.setting = self._start(self._set(loading), "sets a state")
            await asyncio.wait([loading.setting])
            if loading.setting.cancelled() and not loading.superseded:
                loading.error = unset()
        if loading.error is not None:
            raise loading.error

    async def _set(self, loading: Loading) -> None:
        assert self.state is not None
        received = loading.received
        try:
            await _apply(self.state, received)
        except Exception as error:  # noqa: BLE001 (an error of the application: the read raises it)
            loading.error = error
            return
        finally:
            received.close()
        assert loading.provider is not None
        size, digest = received.size, received.digest.intdigest()
        self._record_lacks("set", loading.view, loading.provider, loading.lacks)
        self._record("state_set", loading.view, loading.provider, loading.digest, size, digest)
        if self.loading is loading:
            self.loading = None

    def _record_loss(self, loading: Loading) -> None:
        """Record that the program begins without a state, and the marks behind which it gets all events."""
        reason = "lost" if loading.is_lost else "none"
        self.recorder.record("state_lost", {"reason": reason, "digest": _last_numbers(loading.first)}, loading.view)

    def _record_lacks(self, reason: str, view: ViewId, peer: Address, lacks: Missing) -> None:
        """Record the messages that a state for, or from, `peer` does not contain, although they are below its marks."""
        for fields in lack_columns(reason, peer, lacks):
            self.recorder.record("lack", fields, view)

    def _record(self, kind: str, view: ViewId, peer: Address, digest: Marks, size: int, sum64: int) -> None:
        fields: dict[str, object] = {
            "bytes": size,
            "checksum": (sum64 ^ _SIGN) - _SIGN,  # as a signed long
            "position": 0,
            "peer": peer,
            "digest": _last_numbers(digest),
        }
        self.recorder.record(kind, fields, view)


def _last_numbers(digest: Marks) -> dict[Address, int]:
    """Per origin the number of the last message below a mark, as a journal has it."""
    return {origin: number - 1 for origin, number in digest.items() if number > 1}


async def _apply(state: State | LargeState, received: Received) -> None:
    """Give the application its state."""
    if isinstance(state, LargeState):
        async with aclosing(received.pieces()) as pieces:
            await state.set_state_chunks(pieces)
    else:
        data = received.whole()
        received.close()
        await state.set_state(data)
