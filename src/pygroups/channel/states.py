"""The application's state: given to those who join, taken before anything else when this member joins.

The state is that of the start of a view: `get_state` is awaited where the reader comes to that view in its events, so
exactly what was before it has been applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Final, Protocol

from xxhash import xxh3_64

from pygroups.core.address import Address
from pygroups.core.errors import StateLost, UsageError
from pygroups.core.events import Event, Marks, StateArrived, StateChunk, StateFailed, StateTaken, StateWanted
from pygroups.core.limits import SECOND, TEXT_MAX, Config
from pygroups.core.view import ViewId
from pygroups.drivers.member import Timer

from .loading import Loading, lost, unset
from .log import Log

_SIGN: Final = 1 << 63


class State(Protocol):
    """What `Channel(state=...)` takes."""

    async def get_state(self) -> bytes | AsyncIterable[bytes]:
        """The state as it is now: bytes, or an iterator over a snapshot.  The group goes on while it is read."""

    async def set_state(self, data: bytes) -> None:
        """Begin with this state; what follows it comes as events."""


class Recorder(Protocol):
    """What states need of the member."""

    def ask(self, event: Event) -> None: ...
    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None: ...


class Wanted:
    """A state that joiners wait for, until the application has given it."""

    def __init__(self, event: StateWanted) -> None:
        self.event = event
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # given, or failed
        self.error: Exception | None = None  # what get_state() raised
        self.asking: asyncio.Task[None] | None = None  # get_state() runs
        self.timer: Timer | None = None

    def over(self) -> None:
        """Nobody waits for this application any more."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.done.done():
            self.done.set_result(None)


class Giving:
    """A state that is being given: how much each joiner has taken."""

    def __init__(self, joiners: tuple[Address, ...]) -> None:
        self.taken: dict[Address, int] = dict.fromkeys(joiners, 0)
        self.news = asyncio.Event()


class States:
    """Both sides of the transfer, for one channel.  `broke` is told what the application's own snapshot raised."""

    def __init__(
        self,
        state: State | None,
        recorder: Recorder,
        config: Config,
        later: Callable[[float, Callable[[], object]], Timer],
        broke: Callable[[Exception], None],
        log: Log,
    ) -> None:
        self.state = state
        self.recorder = recorder
        self.config = config
        self.patience = config.state_timeout / SECOND
        self.later = later
        self.broke = broke
        self.log = log
        self.loading: Loading | None = None
        self.lost: StateLost | None = None  # the state that this member waited for was lost
        self.givings: dict[ViewId, Giving] = {}
        self.stopped = False
        self.wanted: dict[ViewId, Wanted] = {}
        self.tasks: dict[asyncio.Task[None], None] = {}

    def stop(self) -> None:
        """Give nothing any more."""
        self.stopped = True
        for wanted in list(self.wanted.values()):
            self._close(wanted)
        for task in self.tasks:
            task.cancel()

    def _start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Application code runs in a task of its own: a read that is cancelled does not cancel it."""
        task = asyncio.get_running_loop().create_task(work, name=f"pygroups {name}")
        self.tasks[task] = None
        task.add_done_callback(lambda done: self.tasks.pop(done, None))
        return task

    # -- giving

    def give_none(self, event: StateWanted) -> None:
        """This member has no state: whoever joins begins with what it has."""
        for joiner in event.joiners:
            self.recorder.ask(StateChunk(event.view, joiner, b"", last=True, none=True))

    def want(self, event: StateWanted) -> Wanted:
        """Joiners wait for a state; the application has `state_timeout` to come to this event and to give it."""
        wanted = self.wanted[event.view] = Wanted(event)
        wanted.timer = self.later(self.patience, lambda: self._late(wanted))
        return wanted

    async def provide(self, wanted: Wanted) -> Exception | None:
        """Take the state now; it is read and sent while the application goes on.  What get_state() raised, if it did.

        A cancellation here ends only the waiting.
        """
        if self.stopped or wanted.done.done():
            return wanted.error
        if wanted.asking is None:
            wanted.asking = self._start(self._ask(wanted), "takes a state")
        await asyncio.shield(wanted.done)
        return wanted.error

    async def _ask(self, wanted: Wanted) -> None:
        try:
            pieces = await self._snapshot()
        except Exception as error:  # noqa: BLE001 (the application's own code: it is told, and so are the joiners)
            wanted.error = error
            self._failed(wanted.event, wanted.event.joiners, f"get_state() raised {_named(error)}")
            self._close(wanted)
            return
        if self.stopped or wanted.done.done():
            async with _closing(pieces):
                return
        self._close(wanted)
        self.givings[wanted.event.view] = Giving(wanted.event.joiners)
        self._start(self._give(wanted.event, pieces), "gives its state")

    async def _snapshot(self) -> AsyncIterator[bytes]:
        assert self.state is not None
        taken: object = self.state.get_state()
        if isinstance(taken, Awaitable):  # else it was written as a generator, which is an iterator already
            taken = await taken
        if isinstance(taken, bytes | bytearray | memoryview):
            return _one(bytes(taken))
        if isinstance(taken, AsyncIterable):
            return aiter(taken)
        raise UsageError(f"get_state() must return bytes or an async iterator of bytes, not {type(taken).__name__}")

    def _late(self, wanted: Wanted) -> None:
        """The application has not given its state in time; the joiners turn to another member."""
        asking = wanted.asking
        did = (
            "was not asked for it, because the program did not read its events" if asking is None else "did not return"
        )
        self._failed(wanted.event, wanted.event.joiners, f"get_state() {did} within {self.patience:g} s")
        self._close(wanted)
        if asking is not None:
            asking.cancel()

    def _close(self, wanted: Wanted) -> None:
        self.wanted.pop(wanted.event.view, None)
        wanted.over()

    def _failed(self, event: StateWanted, joiners: Iterable[Address], reason: str) -> None:
        """This member gives no state for this view: the joiners and the log are told."""
        names = [joiner.name for joiner in joiners]
        if names:
            self.log.warning("gives no state to %s: %s", ", ".join(names), reason)
        for joiner in joiners:
            self.recorder.ask(StateFailed(event.view, joiner, reason[:TEXT_MAX]))

    async def _give(self, wanted: StateWanted, pieces: AsyncIterator[bytes]) -> None:
        giving = self.givings[wanted.view]
        try:
            await self._send(wanted, giving, pieces)
        except TooLong:
            late = f"the iterator of get_state() gave nothing for {self.patience:g} s"
            self._failed(wanted, tuple(giving.taken), late)
        except Exception as error:  # noqa: BLE001 (as in _ask)
            self._failed(wanted, tuple(giving.taken), f"the iterator of get_state() raised {_named(error)}")
            self.broke(error)
        finally:
            del self.givings[wanted.view]

    async def _send(self, wanted: StateWanted, giving: Giving, pieces: AsyncIterator[bytes]) -> None:
        chunks, size, digest, last = 0, 0, xxh3_64(), b""
        in_time = _in_time(pieces, self.patience)
        async with _closing(pieces), aclosing(in_time), aclosing(_cut(in_time, self.config.state_chunk)) as cut:
            async for piece in cut:
                if chunks:
                    self._chunk(wanted.view, giving, last, last=False)
                last = piece
                chunks += 1
                size += len(piece)
                digest.update(piece)
                await self._room(giving, chunks)
                if not giving.taken:
                    return  # nobody needs it any more
        for joiner in giving.taken:
            self._record("state_get", wanted.view, joiner, wanted.digest, size, digest.intdigest())
        self._chunk(wanted.view, giving, last, last=True)

    def _chunk(self, view: ViewId, giving: Giving, data: bytes, *, last: bool) -> None:
        for joiner in giving.taken:
            self.recorder.ask(StateChunk(view, joiner, data, last))

    async def _room(self, giving: Giving, chunks: int) -> None:
        """Wait until the slowest joiner has all but a few of the chunks."""
        while giving.taken and chunks - min(giving.taken.values()) > self.config.state_chunks_ahead:
            giving.news.clear()
            await giving.news.wait()

    def on_taken(self, event: StateTaken) -> None:
        """A joiner has taken some of it, or is gone."""
        giving = self.givings.get(event.view)
        if giving is None or event.joiner not in giving.taken:
            return
        if event.chunks is None:
            del giving.taken[event.joiner]
        else:
            giving.taken[event.joiner] = event.chunks
        giving.news.set()

    # -- taking

    def begin(self, view: ViewId, digest: Marks) -> Loading:
        """A state of `view` will come; one that was on its way is forgotten."""
        before = self.loading
        if before is not None:
            before.supersede()
        self.loading = Loading(view, digest, again=before is not None)
        return self.loading

    def forget(self) -> None:
        """The state that this member waits for will not come."""
        if self.loading is not None:
            self.loading.supersede()
            self.loading = None

    def on_arrived(self, event: StateArrived) -> None:
        """A part of the state has come."""
        loading = self.loading
        if loading is None or event.view != loading.view:
            return  # this application keeps no state
        loading.provider, loading.none = event.provider, event.none
        loading.parts.append(event.data)
        if event.last:
            loading.ready.set()

    async def load(self, loading: Loading) -> None:
        """Have the application begin with the state, once it is here.  Raises what set_state() raised, or StateLost.

        A cancellation here ends only the waiting: the state is set once.
        """
        await loading.ready.wait()
        if loading.superseded:
            return
        if loading.none:
            if loading.is_lost and loading.error is None:
                loading.error = self.lost = lost()
                self.log.warning("%s", self.lost)
            self.loading = None
        else:
            if loading.setting is None:
                loading.setting = self._start(self._set(loading), "sets a state")
            await asyncio.wait([loading.setting])
            if loading.setting.cancelled() and not loading.superseded:
                loading.error = unset()
        if loading.error is not None:
            raise loading.error

    async def _set(self, loading: Loading) -> None:
        assert self.state is not None
        data = b"".join(loading.parts)
        loading.parts.clear()
        try:
            await self.state.set_state(data)
        except Exception as error:  # noqa: BLE001 (the application's own code: it is raised where the program reads)
            loading.error = error
            return
        assert loading.provider is not None
        self._record("state_set", loading.view, loading.provider, loading.digest, len(data), xxh3_64(data).intdigest())
        if self.loading is loading:
            self.loading = None

    def _record(self, kind: str, view: ViewId, peer: Address, digest: Marks, size: int, sum64: int) -> None:
        fields: dict[str, object] = {
            "bytes": size,
            "checksum": (sum64 ^ _SIGN) - _SIGN,  # as a signed long
            "position": 0,
            "peer": peer,
            "digest": {origin: number - 1 for origin, number in digest.items() if number > 1},
        }
        self.recorder.record(kind, fields, view)


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


@asynccontextmanager
async def _closing(pieces: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Close the application's iterator, if it can be, however its reading ends: a snapshot may be open behind it."""
    try:
        yield
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


class TooLong(Exception):
    """The application's iterator gave nothing for `state_timeout`."""


async def _in_time(pieces: AsyncIterator[bytes], seconds: float) -> AsyncGenerator[bytes, None]:
    """The same pieces; raises TooLong when one takes longer than `seconds`."""
    while True:
        try:
            async with asyncio.timeout(seconds) as limit:
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if limit.expired():
                raise TooLong from None
            raise
        yield piece


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _cut(pieces: AsyncIterator[bytes], size: int) -> AsyncGenerator[bytes, None]:
    """The same bytes in pieces of `size`, the last one shorter; yields to the loop between any two."""
    rest = bytearray()
    async for piece in pieces:
        rest += piece
        while len(rest) >= size:
            yield bytes(rest[:size])
            del rest[:size]
            await asyncio.sleep(0)
    if rest:
        yield bytes(rest)
