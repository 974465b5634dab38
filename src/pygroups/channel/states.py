"""The application's state: given to those who join, taken before anything else when this member joins.

The state is that of the start of a view: `get_state` is awaited where the reader comes to that view in its events, so
exactly what was before it has been applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final, Protocol

from xxhash import xxh3_64

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event, Marks, StateArrived, StateChunk, StateTaken, StateWanted
from pygroups.core.limits import Config
from pygroups.core.view import ViewId

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


class Loading:
    """A joiner's state on its way: as of `view`, which holds what `digest` says."""

    def __init__(self, view: ViewId, digest: Marks) -> None:
        self.view = view
        self.digest = digest
        self.provider: Address | None = None
        self.parts: list[bytes] = []
        self.none = False  # there is no state to be had: begin with what there is
        self.superseded = False  # another one, of a later view, comes in its place
        self.ready = asyncio.Event()


class Giving:
    """A state that is being given: how much each joiner has taken."""

    def __init__(self, joiners: tuple[Address, ...]) -> None:
        self.taken: dict[Address, int] = dict.fromkeys(joiners, 0)
        self.news = asyncio.Event()


class States:
    """Both sides of the transfer, for one channel.  `broke` is told what the application's own snapshot raised."""

    def __init__(
        self, state: State | None, recorder: Recorder, config: Config, broke: Callable[[Exception], None]
    ) -> None:
        self.state = state
        self.recorder = recorder
        self.config = config
        self.broke = broke
        self.loading: Loading | None = None
        self.givings: dict[ViewId, Giving] = {}
        self.stopped = False
        self.tasks: dict[asyncio.Task[None], None] = {}

    def stop(self) -> None:
        """Give nothing any more."""
        self.stopped = True
        for task in self.tasks:
            task.cancel()

    # -- giving

    def give_none(self, wanted: StateWanted) -> None:
        """This member has no state: whoever joins begins with what it has."""
        for joiner in wanted.joiners:
            self.recorder.ask(StateChunk(wanted.view, joiner, b"", last=True, none=True))

    async def provide(self, wanted: StateWanted) -> None:
        """Take the state now; it is read and sent while the application goes on."""
        assert self.state is not None
        if self.stopped:
            return
        taken: object = self.state.get_state()
        if isinstance(taken, Awaitable):  # else it was written as a generator, which is an iterator already
            taken = await taken
        if isinstance(taken, bytes | bytearray | memoryview):
            pieces = _one(bytes(taken))
        elif isinstance(taken, AsyncIterable):
            pieces = aiter(taken)
        else:
            raise UsageError(f"get_state() must return bytes or an async iterator of bytes, not {type(taken).__name__}")
        if self.stopped:
            async with _closing(pieces):
                return
        self.givings[wanted.view] = Giving(wanted.joiners)
        task = asyncio.get_running_loop().create_task(self._give(wanted, pieces), name="pygroups gives its state")
        self.tasks[task] = None
        task.add_done_callback(self._given)

    def _given(self, task: asyncio.Task[None]) -> None:
        self.tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.broke(error)

    async def _give(self, wanted: StateWanted, pieces: AsyncIterator[bytes]) -> None:
        giving, chunks = self.givings[wanted.view], 0
        size, digest, last = 0, xxh3_64(), b""
        try:
            async with _closing(pieces), aclosing(_cut(pieces, self.config.state_chunk)) as cut:
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
        finally:
            del self.givings[wanted.view]

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
        if self.loading is not None:
            self.loading.superseded = True
            self.loading.ready.set()
        self.loading = Loading(view, digest)
        return self.loading

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
        """Have the application begin with the state, once it is here."""
        await loading.ready.wait()
        if loading.superseded:
            return
        assert self.state is not None
        if not loading.none:
            data = b"".join(loading.parts)
            await self.state.set_state(data)
            assert loading.provider is not None
            sum64 = xxh3_64(data).intdigest()
            self._record("state_set", loading.view, loading.provider, loading.digest, len(data), sum64)
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
