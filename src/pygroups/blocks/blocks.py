"""Blocks: one channel that carries many named blocks.  Guide: docs/guides/blocks.md."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from contextvars import copy_context
from types import TracebackType
from typing import Any, Final, Protocol, Self
from weakref import ref

from pygroups.channel import Blocked, Channel, Event, Gap, Left, Message, View
from pygroups.channel.options import with_parameters_of
from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, Error, Timeout, Unknown, UnknownYet, UsageError

from .calls import Call, Calls, check_timeout
from .deadlines import Deadlines
from .holding import Holding
from .machine import Machine, Refusal
from .news import Answer, Armed, Changed, Ended, News, Replaced
from .options import BlocksOptions, check_services
from .replica import Replica
from .stream import Stream
from .wire import NAME_MAX, PREFIX, BlockKey, Command, Note, Unserved, command, opened, unserved

NOT_OPEN: Final = "the blocks have not joined their group: use them inside `async with`"
BLOCKED: Final = "this member reaches no majority, and the others may go on without it"


class Endpoint(Protocol):
    """A block that gets notes: messages outside of the replicated state."""

    def on_note(self, sender: Address, body: Any, *, to_all: bool) -> None: ...

    def on_unserved(self, sender: Address, request: int) -> None: ...

    def on_view(self, members: tuple[Address, ...]) -> None: ...


class Blocks:
    """A member of `group` that carries named blocks: dicts, locks, queues, requests.

    The options are those of pygroups.Channel, without `state` and `events`, which the blocks use themselves.
    `on_merge` is "primary" where views merge, and "keep" is refused: the sides would keep different data.

    `async with` joins the group and returns when this process has the state of all blocks.  Blocks can be made before
    and after that, any number of them; those of one kind and name are the same block in all processes.  The program
    gets the other events of the channel, and its own messages, by iteration over this object: the first event is the
    current View.  It sends its own messages with `blocks.channel.send(...)`; they must not begin with the bytes C1 42.

    Raises UsageError for a wrong option; `async with` raises the errors of Channel, and StateLost if all members that
    had the state are gone.
    """

    @with_parameters_of(BlocksOptions)
    def __init__(self, options: BlocksOptions) -> None:
        self.options = options
        self.channel = Channel(**options.for_channel(), state=self)
        self.view: View | None = None  # as far as the blocks have read
        self.held: dict[int, Holding] = {}  # by call
        self._replica = Replica()
        self._calls = Calls()
        self._deadlines = Deadlines()
        self._endpoints: dict[BlockKey, Endpoint] = {}
        self._readers: dict[BlockKey, list[ref[Stream[News]]]] = {}  # of the changes of a block
        self._events: list[ref[Stream[Event]]] = []
        self._mine: dict[Address, None] = {}  # the addresses of this process, one for each incarnation
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._in_view: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closed = NOT_OPEN  # the text of ChannelClosed, while the blocks are not open
        self._cause: BaseException | None = None
        self._is_open = False
        self._context = copy_context()

    def __repr__(self) -> str:
        return f"<Blocks on {self.channel!r}>"

    # -- joining and leaving

    async def __aenter__(self) -> Self:
        if self._reading is not None:
            raise UsageError("these blocks were opened before: create new Blocks")
        await self.channel.__aenter__()
        loop = asyncio.get_running_loop()
        self._in_view = loop.create_future()
        self._is_open, self._context = True, copy_context()
        self._count_again()
        self._reading = loop.create_task(self._read(), name=f"blocks of {self.channel.address.name}")
        try:
            await self.channel.ready()
            await asyncio.shield(self._in_view)
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()
        cause = self._cause
        if error is None and cause is not None and not isinstance(cause, Error):
            raise cause  # a bug in pygroups

    async def _leave(self) -> None:
        for holding in list(self.held.values()):
            holding.end("the blocks are leaving their group")
        try:
            await self.channel.leave()
            if self._reading is not None:
                await asyncio.wait([self._reading])
        finally:
            self._end("the channel has left its group", None)
            if self._reading is not None:
                self._reading.cancel()
            for task in list(self._tasks):
                task.cancel()

    def _end(self, why: str, cause: BaseException | None) -> None:
        """No event comes any more."""
        if not self._is_open:
            return
        self._is_open, self._closed, self._cause = False, why, cause
        self._calls.on_end(why, cause)
        for holding in list(self.held.values()):
            holding.end(why)
        for endpoint in list(self._endpoints.values()):
            endpoint.on_view(())
        if self._timer is not None:
            self._timer.cancel()
        readers: list[ref[Stream[Any]]] = [*self._events]
        for more in self._readers.values():
            readers += more
        for reader in readers:
            if (stream := reader()) is not None:
                stream.close(cause)
        if self._in_view is not None and not self._in_view.done():
            self._in_view.set_exception(cause or ChannelClosed(why))
            self._in_view.exception()  # it counts as seen

    # -- reading

    async def _read(self) -> None:
        """Handle all events of the channel, to its end."""
        try:
            async for events in self.channel.batches():
                for event in events:
                    self._on_event(event)
        except Exception as error:  # noqa: BLE001 (the end of the channel, or a bug: the calls of the program raise it)
            # StateLost too: each member that waited would begin at another place of the order, with other blocks.
            await self._give_up(error)
        else:
            self._end("the channel has left its group", None)

    async def _give_up(self, error: Exception) -> None:
        self._end(str(error) or type(error).__name__, error)
        with contextlib.suppress(Error):
            await self.channel.leave()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Message):
            if event.payload.startswith(PREFIX):
                self._on_message(event)
                return
        elif isinstance(event, View):
            self._on_view(event)
        elif isinstance(event, Gap):
            if event.sender in self._mine:
                self._calls.on_gap(event)
        elif isinstance(event, Left):
            self._on_left(event)
        elif isinstance(event, Blocked):
            for holding in [one for one in self.held.values() if one.ends_when_blocked]:
                holding.end(BLOCKED)
        self._tell(self._events, event)

    def _on_message(self, event: Message) -> None:
        message = opened(event.payload)
        if isinstance(message, Command) and event.position is not None:
            self._replica.apply(event.sender, message)
            self._spread()
        elif isinstance(message, Note | Unserved):
            endpoint = self._endpoints.get((message.kind, message.name))
            if endpoint is None:
                if isinstance(message, Note) and message.request:
                    self.start(self.channel.send(unserved(message), to=event.sender))
            elif isinstance(message, Unserved):
                endpoint.on_unserved(event.sender, message.request)
            else:
                endpoint.on_note(event.sender, message.body, to_all=event.position is not None)

    def _on_view(self, view: View) -> None:
        self.view = view
        self._mine[self.channel.address] = None
        self._replica.on_view(view.members)
        self._spread()
        for endpoint in list(self._endpoints.values()):
            endpoint.on_view(view.members)
        if self._in_view is not None and not self._in_view.done():
            self._in_view.set_result(None)

    def _on_left(self, event: Left) -> None:
        self._calls.on_left(event.reason)
        for holding in list(self.held.values()):
            holding.end(f"this member has left its group ({event.reason})")
        for endpoint in list(self._endpoints.values()):
            endpoint.on_view(())

    def _spread(self) -> None:
        """Give the news of the machines to the callers and readers in this process."""
        for news in self._replica.taken():
            if isinstance(news, Answer):
                self._on_answer(news)
            elif isinstance(news, Armed):
                self._deadlines.arm(self._now(), news, self._replica)
                self._set_timer()
            elif isinstance(news, Ended):
                if news.ticket.owner in self._mine and (holding := self.held.get(news.ticket.call)) is not None:
                    holding.end(news.reason)
            elif isinstance(news, Changed | Replaced) and news.block in self._readers:
                self._tell(self._readers[news.block], news)

    def _on_answer(self, news: Answer) -> None:
        if news.ticket.owner not in self._mine:
            return
        holding = self._calls.on_answer(news)
        if holding is not None and news.value is not None and not isinstance(news.value, Refusal):
            self.held[news.ticket.call] = holding  # now, so that it hears of its end however soon that comes

    def _tell(self, readers: list[ref[Stream[Any]]], item: object) -> None:
        for reader in list(readers):
            stream = reader()
            if stream is None or stream.closed:
                readers.remove(reader)
            else:
                stream.put(item)

    # -- deadlines

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _count_again(self) -> None:
        self._deadlines.begin_again(self._now(), self._replica.armed())
        self._set_timer()

    def _set_timer(self) -> None:
        at = self._deadlines.next
        if self._timer is not None and not self._timer.cancelled() and (at is None or self._timer.when() != at):
            self._timer.cancel()
            self._timer = None
        if at is not None and self._timer is None and self._is_open:
            self._timer = asyncio.get_running_loop().call_at(at, self._on_time, at)

    def _on_time(self, at: float) -> None:
        self._timer = None
        now = max(at, self._now())  # an event loop may call a little before the time
        rank = next((rank for rank, member in enumerate(self.members) if member in self._mine), len(self.members))
        for block, keys in self._deadlines.due(now, self._replica, rank).items():
            self.post(block, self._replica.machines[block].due_op(keys))
        self._set_timer()

    # -- the state, for the channel

    async def get_state(self) -> bytes:
        """The state of all blocks; the channel calls this function for a member that joins."""
        if self._cause is not None:
            raise ChannelClosed(self._closed)
        return self._replica.saved()

    async def set_state(self, data: bytes) -> None:
        """Begin with the state of the group; the channel calls this function."""
        self._replica.load(data)
        self._spread()
        self._count_again()
        for call in self._calls.sent():
            self.start(self._in_the_state(call))

    async def _in_the_state(self, call: Call) -> None:
        """End a call whose command is in the state that was set, so that no answer to it comes."""
        assert call.message is not None
        try:
            await self.channel.wait(call.message, until="read")
        except Error as error:
            call.fail(error)
        else:
            call.fail(Unknown("the change is made, and its answer was lost with a new state", call.message))

    # -- for the program

    def __aiter__(self) -> Stream[Event]:
        return self.events()

    def events(self) -> Stream[Event]:
        """The events of the channel that are not the blocks' own, from now on.  The first one is the current View.  A
        stream that is made before `async with` has all events from the first View on.  A reader that falls 65,536
        events behind gets Overrun."""
        if self._reading is not None:
            self.check_open()
        stream = Stream[Event]()
        if self.view is not None:
            stream.put(self.view)
        self._events.append(ref(stream))
        return stream

    @property
    def members(self) -> tuple[Address, ...]:
        """The members of the view that the blocks have read.  Raises ChannelClosed before the join."""
        self.check_open()
        return () if self.view is None else self.view.members

    # -- for the blocks

    def is_mine(self, member: Address) -> bool:
        """Whether this process is `member`, or was it before it joined again."""
        return member in self._mine

    def check_open(self) -> None:
        """Raise ChannelClosed, with the reason, unless the blocks are in their group."""
        if not self._is_open:
            raise ChannelClosed(self._closed) from self._cause

    def check_block(self, kind: str, name: str, needed: frozenset[str]) -> None:
        """Raise UsageError for a block that cannot have this name, or that needs another profile."""
        if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX:
            raise UsageError(f"{name!r} cannot name a block: use 1 to {NAME_MAX} characters")
        profile = self.options.chosen_profile
        check_services(kind, profile.name, profile.services, needed)

    def machine(self, key: BlockKey) -> Machine | None:
        """The replicated part of a block; None: it is empty."""
        return self._replica.machines.get(key)

    def changes(self, key: BlockKey) -> Stream[News]:
        """The changes of a block from now on."""
        self.check_open()
        stream = Stream[News]()
        self._readers.setdefault(key, []).append(ref(stream))
        return stream

    def serve(self, key: BlockKey, endpoint: Endpoint) -> None:
        """From now on `endpoint` gets the notes for this block."""
        if key in self._endpoints:
            raise UsageError(f"there is a block {key[1]!r} of this kind in this process: use that one")
        self._endpoints[key] = endpoint

    def start(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        """Run `work` until the blocks leave.  Its own errors of pygroups end it quietly."""
        task = asyncio.get_running_loop().create_task(_quietly(work), context=self._context)
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))
        return task

    def post(self, key: BlockKey, op: object) -> None:
        """Send a command whose answer nobody waits for."""
        if self._is_open:
            self.start(self.channel.send(command(0, key, op)))

    async def call(
        self,
        key: BlockKey,
        op: object,
        *,
        until: str | None = "read",
        timeout: float | None = None,
        holding: Holding | None = None,
    ) -> Any:
        """Send a command, and return its answer when this process has handled it.

        `until`: "read", None (do not wait for the answer, and return None) or "stable" (all members have received the
        command too).  `holding` gets the number of the call, and is held from the answer on.  Raises Timeout if the
        command was not sent in time, Unknown if its effect is not known, DeliveredElsewhere after a split, and
        ChannelClosed.
        """
        if until not in ("read", "stable", None):
            raise UsageError(f"until={until!r} is not known: use 'read', 'stable' or None")
        check_timeout(timeout)
        self.check_open()
        call = self._calls.begin(holding)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._answered(call, key, op, until)
        except TimeoutError:
            if call.message is None:
                raise Timeout(f"the change was not sent within {timeout} s: the window is full, or blocked") from None
            text = f"the answer did not come within {timeout} s; the change may still come"
            raise UnknownYet(text, call.message) from None
        finally:
            self._calls.end(call)
        if isinstance(answer, Refusal):
            raise UsageError(answer.text)
        return answer

    async def _answered(self, call: Call, key: BlockKey, op: object, until: str | None) -> Any:
        number = await self.channel.send(command(call.number, key, op))
        self._mine[self.channel.address] = None
        call.message = number
        if until is None:
            return None
        answer = await call.answer
        if until == "stable":
            await self.channel.wait(number, until="stable")
        return answer


async def _quietly(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Error:
        return  # the channel ends: the reading task says why
