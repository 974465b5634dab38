"""Sending: what is accepted, who waits for room in the window, and who waits until a message has arrived."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Final, Literal, NamedTuple, Protocol

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, NotBuilt, NotSent, Timeout, Unknown, UsageError, WouldBlock
from pygroups.core.layer import Env
from pygroups.core.limits import ENTRY_BYTES
from pygroups.core.top import Reached

Payload = bytes | bytearray | memoryview
Until = Literal["delivered", "stable"]
Guard = Callable[["asyncio.Future[None]"], AbstractContextManager[None]]

SHUT: Final = -1  # the credit of a channel that takes nothing at once


class Top(Protocol):
    """The top of the stack, as a sender sees it; see core/top.py."""

    env: Env

    def accept(self, payload: bytes, to: Address | None = None) -> int: ...
    def room(self) -> int: ...
    def sent_bytes(self) -> int: ...
    def unknown(self) -> range: ...
    def waits_for(self) -> tuple[Address, ...]: ...


class Waiting(NamedTuple):
    """A sender that waits for room."""

    woken: asyncio.Future[None]
    size: int


class Outbox:
    """Between `send` and the top of the stack.

    `credit` is how many bytes may be accepted at once; each turn sets it anew.  `guard` is entered with the future that
    a sender waits for: the task that reads the events must not wait for itself.  `own_read`: how many bytes of own
    multicasts the application here has read; its own reading counts like anybody's.
    """

    def __init__(
        self,
        top: Top,
        schedule: Callable[[], None],
        guard: Guard,
        members: Callable[[], Collection[Address]],
        own_read: Callable[[], int],
    ) -> None:
        self.top = top
        self.members = members
        self.own_read = own_read
        self.schedule = schedule
        self.guard = guard
        self.credit = SHUT
        self.closed: str | None = "the channel has not joined its group: use it inside `async with`"
        self.limit = top.env.config.run_bytes
        self.window = top.env.config.window
        self.quarter = self.window // 4
        self.ended: str | None = None  # why nothing arrives any more
        self.cause: BaseException | None = None  # the fault that ended it
        self.waiting: deque[Waiting] = deque()
        self.reserved = 0  # room of senders that were woken and have not run yet
        self.until: dict[Until, deque[tuple[int, asyncio.Future[None]]]] = {"delivered": deque(), "stable": deque()}
        self.reached = Reached(1, 1)
        self.unicast_bytes = 0  # accepted since the last turn

    # -- from the application

    async def send(self, payload: Payload, to: Address | None, until: Until | None, timeout: float | None) -> int:
        """Accept `payload` when there is room, and wait `until` it has arrived; its number."""
        data = self.checked(payload)
        _check_how(to, until, timeout)
        number = 0
        try:
            async with asyncio.timeout(timeout):
                number = await self._accept(data, to)
                if until is not None:
                    await self._arrival(number, until)
        except TimeoutError:
            if number:
                raise Unknown(f"message {number} was not {until} within {timeout} s; it may still be", number) from None
            raise Timeout(f"the window had no room for the message within {timeout} s; it was not sent") from None
        return number

    def send_nowait(self, payload: Payload, to: Address | None) -> int:
        """Accept `payload`, or raise WouldBlock."""
        data = self.checked(payload)
        self._check_open(to)
        if to is None and not self._take(len(data) + ENTRY_BYTES):
            raise WouldBlock("the window is full: the message was not sent")
        return self._accepted(data, to)

    async def send_many(self, payloads: Iterable[Payload], until: Until | None, timeout: float | None) -> list[int]:
        """Accept `payloads` in order; their numbers.  What is raised says how many were accepted before."""
        _check_how(None, until, timeout)
        numbers: list[int] = []
        accepted = False
        try:
            async with asyncio.timeout(timeout) as limit:
                for payload in payloads:
                    data = self.checked(payload)
                    self._check_open(None)
                    if not self._take(len(data) + ENTRY_BYTES):
                        await self._room(len(data) + ENTRY_BYTES)
                    numbers.append(self._accepted(data, None))
                accepted = True
                if until is not None and numbers:
                    await self._arrival(numbers[-1], until)
        except NotSent as error:
            error.accepted = len(numbers)
            raise
        except TimeoutError:
            if not limit.expired():
                raise  # of the application's own iterable
            if accepted:
                raise Unknown(f"message {numbers[-1]} was not {until} within {timeout} s", numbers[-1]) from None
            raise Timeout(f"the window had no room for all within {timeout} s", len(numbers)) from None
        return numbers

    async def wait(self, number: int, until: Until, timeout: float | None) -> None:
        """Wait until own multicast `number` has arrived."""
        _check_how(None, until, timeout)
        if not 0 < number < self.top.unknown().stop:
            raise UsageError(
                f"message {number} was not sent: the numbers so far are 1 to {self.top.unknown().stop - 1}"
            )
        try:
            async with asyncio.timeout(timeout):
                await self._arrival(number, until)
        except TimeoutError:
            raise Unknown(f"message {number} was not {until} within {timeout} s; it may still be", number) from None

    def checked(self, payload: Payload) -> bytes:
        """`payload` as bytes that nobody changes any more; UsageError if it is none, or too large."""
        if type(payload) is not bytes:
            if not isinstance(payload, bytes | bytearray | memoryview):
                kind = type(payload).__name__
                raise UsageError(f"a payload is bytes, not {kind}: encode it first, for instance text.encode()")
            payload = bytes(payload)
        if len(payload) > self.limit:
            raise UsageError(f"the payload has {len(payload):,} bytes; the limit is {self.limit:,}: send it in parts")
        return payload

    # -- accepting

    async def _accept(self, data: bytes, to: Address | None) -> int:
        self._check_open(to)
        if to is None and not self._take(len(data) + ENTRY_BYTES):
            await self._room(len(data) + ENTRY_BYTES)
        if to is not None:
            self.unicast_bytes += len(data)
            if self.unicast_bytes > self.window:
                await asyncio.sleep(0)  # no window holds the sender here: let the loop send what there is
        return self._accepted(data, to)

    def _take(self, size: int) -> bool:
        if size > self.credit:
            return False
        self.credit -= size
        return True

    def _accepted(self, data: bytes, to: Address | None) -> int:
        self.schedule()
        return self.top.accept(data, to)

    def _check_open(self, to: Address | None) -> None:
        if self.closed is not None:
            raise ChannelClosed(self.closed) from self.cause
        if to is not None and not isinstance(to, Address):
            raise UsageError(f"to={to!r} is no address: take one from channel.view.members or from a message's sender")
        if to is not None and to not in self.members():
            raise NotSent(f"{to} is not in the view: the message was not sent")

    async def _room(self, size: int) -> None:
        """Wait in line for so much of the window.  Whoever is cancelled here has not sent."""
        woken = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(woken, size))
        self.credit = SHUT  # who comes later stands in line too
        self.schedule()
        try:
            with self.guard(woken):
                await woken
        finally:
            if not woken.done():
                woken.cancel()  # the guard let nobody wait: no room is kept for it
            elif not woken.cancelled() and woken.exception() is None:
                self.reserved -= size
            self.schedule()

    # -- from the stack

    def turned(self) -> None:
        """A turn is over: see how much room there is, and who may have it."""
        if self.closed is not None:
            return
        self.unicast_bytes = 0
        room = self.room() - self.reserved
        if self.waiting:
            room = self._wake(room)
        self.credit = SHUT if self.waiting else room

    def room(self) -> int:
        """How many bytes the window has left: a message is in it until every member has read it, this one included."""
        return min(self.top.room(), self.window - (self.top.sent_bytes() - self.own_read()))

    def holders(self) -> tuple[Address, ...]:
        """Who holds the window shut: the members that have read least of it; nobody while it is open."""
        if self.room() >= self.quarter:
            return ()
        others, unread = self.top.room(), self.window - (self.top.sent_bytes() - self.own_read())
        return (self.top.env.me,) if unread <= others else self.top.waits_for()

    def _wake(self, room: int) -> int:
        """Wake those in line for whom there is room, once a quarter of the window is free."""
        waiting = self.waiting
        while waiting and (waiting[0].woken.done() or room >= min(max(waiting[0].size, self.quarter), self.window)):
            woken, size = waiting.popleft()
            if not woken.done():
                woken.set_result(None)
                self.reserved += size
                room -= size
        return room

    # -- arriving

    async def _arrival(self, number: int, until: Until) -> None:
        if number < getattr(self.reached, until):
            return
        if self.ended is not None:
            raise Unknown(f"{self.ended} before message {number} was {until}; it may still be", number) from self.cause
        arrived = asyncio.get_running_loop().create_future()
        line = self.until[until]
        insort(line, (number, arrived), key=lambda waiting: waiting[0])
        try:
            await arrived
        except asyncio.CancelledError:
            with suppress(ValueError):  # it may have been told in the same pass
                line.remove((number, arrived))
            raise

    def on_reached(self, reached: Reached) -> None:
        """Own messages have arrived."""
        self.reached = reached
        for until, line in self.until.items():
            below = getattr(reached, until)
            while line and line[0][0] < below:
                _, arrived = line.popleft()
                if not arrived.done():
                    arrived.set_result(None)

    # -- the beginning and the end

    def open(self) -> None:
        """The channel has joined."""
        self.closed = None
        self.turned()

    def close(self, why: str, cause: BaseException | None = None) -> None:
        """Nothing is accepted any more; who waits for room hears that its message was not sent."""
        self.cause = cause or self.cause
        if self.closed is None:
            self.closed, self.credit = why, SHUT
        while self.waiting:
            woken, _ = self.waiting.popleft()
            if not woken.done():
                woken.set_exception(_because(NotSent(f"{why}: the message was not sent"), self.cause))

    def forked(self, why: str) -> None:
        """This is a child of the process that sends: nothing is accepted here, and nobody here was waiting."""
        self.closed, self.ended, self.credit = why, why, SHUT

    def give_up(self, why: str, cause: BaseException | None = None) -> None:
        """Nothing arrives any more, because of a fault perhaps."""
        self.close(why, cause)
        self.ended = why
        for until, line in self.until.items():
            while line:
                number, arrived = line.popleft()
                if not arrived.done():
                    unknown = Unknown(f"{why} before message {number} was {until}; it may still be", number)
                    arrived.set_exception(_because(unknown, self.cause))


def _because(error: Exception, cause: BaseException | None) -> Exception:
    """`error`, as if it was raised from `cause`."""
    error.__cause__ = cause
    return error


def _check_how(to: Address | None, until: Until | None, timeout: float | None) -> None:
    if until not in (None, "delivered", "stable"):
        raise UsageError(f"until={until!r} is not known: use 'delivered' or 'stable'")
    if until is not None and to is not None:
        raise NotBuilt("until= together with to= is not built yet: have the receiver answer")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout >= 0):
        raise UsageError(f"timeout={timeout!r} must be a number of seconds, or None to wait without limit")
