"""Requests from one member to one, some or all members, with their replies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE, UsageError

from .blocks import Blocks
from .calls import check_timeout
from .errors import NoReply, RequestTimeout
from .gathering import Gathering, Reply, Wants
from .wire import BlockKey, encode, note

HANDLERS_MAX: Final = 1_000  # requests that a process handles at a time; a further one is refused
ERROR_MAX: Final = 1_000  # characters of the text of an error
Handler = Callable[[Any, Address], Awaitable[Any]]
Number = Annotated[int, Meta(ge=0)]
_log: Final = logging.getLogger("pygroups.blocks")


class Ask(msgspec.Struct, array_like=True, tag="a"):
    number: Number
    value: msgspec.Raw


class Tell(msgspec.Struct, array_like=True, tag="t"):
    number: Number
    value: msgspec.Raw


class Fail(msgspec.Struct, array_like=True, tag="f"):
    number: Number
    reason: str


_bodies: Final = msgspec.msgpack.Decoder(Ask | Tell | Fail)


class Requests:
    """Requests with the name `name`, in any profile with views and a state.

    `handler`: a coroutine function `handler(value, caller)` whose result is the reply.  Each request is handled in a
    task of its own, up to 1,000 at a time.  A process without a handler, or without this object, replies with an error.
    `request` and `reply` are the types of the two; by default any plain value.

    A member that leaves the group, also by a crash, is an answer: the caller learns at once, with the view, that no
    reply comes.  Its handler may have run.  A request is handled at most once by each member.
    """

    def __init__(
        self, blocks: Blocks, name: str, handler: Handler | None = None, *, request: Any = Any, reply: Any = Any
    ) -> None:
        blocks.check_block("Requests", name, frozenset())
        self.name = name
        self._blocks = blocks
        self._key: BlockKey = ("requests", name)
        self._handler = handler
        self._numbers = count(1)
        self._open: dict[int, tuple[Gathering, asyncio.Event]] = {}
        self._handling = 0
        try:
            self._requests, self._replies = msgspec.msgpack.Decoder(request), msgspec.msgpack.Decoder(reply)
        except TypeError as error:
            raise UsageError(f"request= and reply= need types that msgspec decodes: {error}") from None
        blocks.serve(self._key, self)

    def __repr__(self) -> str:
        return f"<Requests {self.name!r}>"

    # -- calling

    async def call(self, member: Address, value: Any, *, timeout: float | None = None) -> Any:
        """The reply of `member`, which can be this member itself.

        Raises NoReply if it leaves first, or if its handler raised an error; RequestTimeout, a TimeoutError too, after
        `timeout` seconds: its handler may have run, or may still run.
        """
        (reply,) = await self.call_some([member], value, timeout=timeout)
        if reply.error is not None:
            raise NoReply(f"{member} gave no reply to {self.name!r}: {reply.error}", (reply,))
        return reply.value

    async def call_some(
        self, members: Sequence[Address], value: Any, *, wants: Wants = "all", timeout: float | None = None
    ) -> list[Reply]:
        """The replies of some members.  `wants`: "all" (each has replied or left; errors are among the replies),
        "majority" (replies with a value of more than half of them) or "first" (one reply with a value).

        Raises NoReply if too many members left or failed for what is wanted, and RequestTimeout; both have the
        `replies` so far.
        """
        gathering = Gathering(_checked(wants), dict.fromkeys(members))
        gathering.on_view(self._blocks.members)

        async def send(payload: bytes) -> None:
            for member in gathering.callees or ():
                if member not in gathering.replies:
                    await self._send(member, payload, gathering)

        return await self._gathered(gathering, value, send, timeout)

    async def call_all(self, value: Any, *, wants: Wants = "all", timeout: float | None = None) -> list[Reply]:
        """As call_some, of all members, this one included.  In a profile with one order all members begin to handle
        the request at the same place among the messages, and in the same view."""
        gathering = Gathering(_checked(wants), None)

        async def send(payload: bytes) -> None:
            await self._blocks.channel.send(payload, until="delivered")

        return await self._gathered(gathering, value, send, timeout)

    async def _gathered(
        self,
        gathering: Gathering,
        value: Any,
        send: Callable[[bytes], Awaitable[None]],
        timeout: float | None,
    ) -> list[Reply]:
        check_timeout(timeout)
        self._blocks.check_open()
        number, news = next(self._numbers), asyncio.Event()
        payload = note(self._key, Ask(number, self._encoded(value)), number)
        self._open[number] = (gathering, news)
        try:
            async with asyncio.timeout(timeout):
                await send(payload)
                while not gathering.is_over:
                    news.clear()
                    await news.wait()
        except TimeoutError:
            replies = tuple(gathering.replies.values())
            missing = [str(member) for member in gathering.callees or () if member not in gathering.replies]
            text = f"no reply to {self.name!r} within {timeout} s of {', '.join(missing) or 'the group'}"
            raise RequestTimeout(text, replies) from None
        finally:
            del self._open[number]
        if not gathering.replies:
            self._blocks.check_open()
        if not gathering.is_met:
            text = f"{self.name!r} has no {gathering.wants} of replies: "
            reasons = [f"{reply.member}: {reply.error}" for reply in gathering.replies.values() if reply.error]
            raise NoReply(text + "; ".join(reasons), tuple(gathering.replies.values()))
        return list(gathering.replies.values())

    def _encoded(self, value: Any) -> msgspec.Raw:
        try:
            data = encode(value)
            self._requests.decode(data)
        except (TypeError, OverflowError, msgspec.ValidationError) as error:
            raise UsageError(f"this cannot be a request to {self.name!r}: {error}") from None
        return msgspec.Raw(data)

    async def _send(self, member: Address, payload: bytes, gathering: Gathering) -> None:
        try:
            await self._blocks.channel.send(payload, to=member)
        except UsageError:
            gathering.put(Reply(member, error="it left the group before it got the request", left=True))

    # -- handling, in the task that reads the channel

    def on_note(self, sender: Address, body: Any, *, to_all: bool) -> None:
        """A request or a reply has come."""
        try:
            message: Ask | Tell | Fail = _bodies.decode(body)
        except UNDECODABLE:
            return
        if isinstance(message, Ask):
            if to_all and self._blocks.is_mine(sender) and message.number in self._open:
                gathering, news = self._open[message.number]
                gathering.know(self._blocks.members)  # the members of the view in which all handle it
                news.set()
            self._begin(sender, message)
        elif message.number in self._open:
            gathering, news = self._open[message.number]
            gathering.put(self._reply(sender, message))
            news.set()

    def on_unserved(self, sender: Address, request: int) -> None:
        """A member has no Requests of this name."""
        if request in self._open:
            gathering, news = self._open[request]
            gathering.put(Reply(sender, error="it does not serve these requests"))
            news.set()

    def on_view(self, members: tuple[Address, ...]) -> None:
        """Some members may be gone."""
        for gathering, news in self._open.values():
            gathering.on_view(members)
            news.set()

    def _reply(self, sender: Address, message: Tell | Fail) -> Reply:
        if isinstance(message, Fail):
            return Reply(sender, error=message.reason)
        try:
            return Reply(sender, self._replies.decode(message.value))
        except UNDECODABLE as error:
            return Reply(sender, error=f"its reply has another type: {error}")

    def _begin(self, caller: Address, ask: Ask) -> None:
        if self._handler is None:
            reason = "it has no handler"
        elif self._handling >= HANDLERS_MAX:
            reason = f"it handles {HANDLERS_MAX:,} requests now"
        else:
            self._handling += 1
            self._blocks.start(self._handle(self._handler, caller, ask))
            return
        self._blocks.start(self._blocks.channel.send(note(self._key, Fail(ask.number, reason)), to=caller))

    async def _handle(self, handler: Handler, caller: Address, ask: Ask) -> None:
        answer: Tell | Fail
        try:
            value = await handler(self._requests.decode(ask.value), caller)
            answer = Tell(ask.number, msgspec.Raw(encode(value)))
        except Exception as error:  # noqa: BLE001 (of the application: the caller gets its text)
            _log.warning("the handler of requests %r raised %s: %s", self.name, type(error).__name__, error)
            answer = Fail(ask.number, f"its handler raised {type(error).__name__}: {error}"[:ERROR_MAX])
        finally:
            self._handling -= 1
        try:
            await self._blocks.channel.send(note(self._key, answer), to=caller)
        except UsageError as error:
            if caller in self._blocks.members:  # otherwise nobody waits for it any more
                reason = Fail(ask.number, f"its reply cannot be sent: {error}"[:ERROR_MAX])
                await self._blocks.channel.send(note(self._key, reason), to=caller)


def _checked(wants: Wants) -> Wants:
    if wants not in ("all", "majority", "first"):
        raise UsageError(f"wants={wants!r} is not known: use 'all', 'majority' or 'first'")
    return wants
