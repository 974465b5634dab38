"""Sending: the outbox accepts messages, and lets senders wait for the window and for `until`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import ClassVar, Final, Protocol

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, NotSent, Timeout, UsageError, WouldBlock
from pygroups.core.events import Event, StableWanted
from pygroups.core.layer import Env
from pygroups.core.limits import ENTRY_BYTES
from pygroups.core.services import GOSSIP, MEMBERSHIP
from pygroups.core.tables import Tables, under
from pygroups.core.top import Reached

from .demands import Payload, Until, Withdrawn, as_bytes, because, check_how, late, no_room, of_window, unknown
from .line import WaitingLine
from .missing import Missing
from .receipts import LaterNumber, NumberToOne, Receipts
from .sender_queue import SenderQueue

SHUT: Final = -1  # the credit of a channel that accepts no message without a wait


class Top(Protocol):
    """The part of the top layer that a sender uses; see core/top.py."""

    env: Env

    def accept(self, payload: bytes, to: Address | None = None) -> int: ...
    def room(self, to: Address | None = None) -> int: ...
    def sent_bytes(self) -> int: ...
    def unknown(self) -> range: ...
    def waits_for(self) -> tuple[Address, ...]: ...
    def waits_for_readers(self) -> bool: ...


class OwnReads(Protocol):
    """The part of the inbox that a sender uses."""

    gives_events: bool  # False: the application reads no events
    own_read: WaitingLine  # of the own multicasts that this application has read

    @property
    def own_read_bytes(self) -> int:
        """The bytes of these multicasts.  An own multicast fills the window until the application has read it."""

    @property
    def own_unread_bytes(self) -> int:
        """The bytes of the own multicasts that were delivered here and that the application has not read."""

    def guard(self, waiting: asyncio.Future[None]) -> AbstractContextManager[None]:
        """A context for the future of a sender that waits for room: the task that reads must not wait for itself."""

    def guard_read(self, waiting: asyncio.Future[None], number: int) -> AbstractContextManager[None]:
        """The same for a sender that waits until the application has read message `number`."""


class Outbox:
    """The part of a channel between `send` and the top of the stack.

    `credit`: the bytes that `send` may accept without a wait; each turn sets it again.  `ask`: sends an event to the
    stack.
    """

    tables: ClassVar[Tables] = {
        "missing.gaps": "gaps",
        "queue.waiting": "calls",
        "queues": "calls",
        "queues[].waiting": "calls",
        "until": "fixed",
        "until[].waiting": "calls",
        "until[].waiting[]": "fixed",
        **under("receipts", Receipts.tables),
    }

    def __init__(
        self,
        top: Top,
        schedule: Callable[[], None],
        reading: OwnReads,
        members: Callable[[], Container[Address]],
        ask: Callable[[Event], None],
        delivery_waits_for: Callable[[], tuple[Address, ...]] = tuple,
    ) -> None:
        """`delivery_waits_for`: the members for which the delivery of own multicasts at this member waits."""
        self.top = top
        self.members = members
        self.grouped = MEMBERSHIP in top.env.services  # False: every message names its receiver
        self.confirms = GOSSIP not in top.env.services  # False: no member knows which members have a multicast
        self.ask = ask
        self.delivery_waits_for = delivery_waits_for
        self.schedule = schedule
        self.reading = reading
        self.credit = SHUT
        self.closed: str | None = "the channel has not joined its group: use it inside `async with`"
        self.limit = top.env.config.payload_max
        self.window = top.env.config.window
        self.quarter = self.window // 4
        self.ended: str | None = None  # the reason why no message arrives any more
        self.cause: BaseException | None = None  # the internal error that ended the channel
        self.rejoins = False  # after the end the next incarnation accepts messages
        self.birth = 0  # earlier incarnations of this member in the channel
        self.queue = SenderQueue(self.window)  # of multicasts
        self.queues: dict[Address, SenderQueue] = {}  # of messages to one member
        self.until: dict[Until, WaitingLine] = {
            "delivered": WaitingLine(),
            "read": reading.own_read,
            "stable": WaitingLine(),
        }
        self.missing = Missing()
        self.receipts = Receipts(self._without_receipt)  # of messages to one member

    # -- from the application

    async def send(self, payload: Payload, to: Address | None, until: Until | None, timeout: float | None) -> int:
        """Accept `payload` when there is room, and wait for `until`.  Returns the number of the message."""
        data = as_bytes(payload, self.limit)
        self._check_how(to, until, timeout)
        number = 0
        try:
            async with asyncio.timeout(timeout):
                number = await self._accept(data, to)
                if until is not None:
                    await self._arrived(number, until)
        except TimeoutError:
            if number:
                raise late(number, until, timeout) from None
            text = "the message was not sent: the window had no room for the message"
            raise Timeout(self._no_room(text, timeout, to)) from None
        return number

    def send_nowait(self, payload: Payload, to: Address | None) -> int:
        """Accept `payload`, or raise WouldBlock."""
        data = as_bytes(payload, self.limit)
        self._check_open(to)
        if not self._take(len(data) + ENTRY_BYTES, to):
            raise WouldBlock(
                f"the message was not sent: the window {of_window(to)}is full; await send(), or try again later"
            )
        return self._accepted(data, to)

    async def send_many(self, payloads: Iterable[Payload], until: Until | None, timeout: float | None) -> list[int]:
        """Accept `payloads` in order.  Returns their numbers.  NotSent.accepted has the number of the accepted
        payloads."""
        self._check_how(None, until, timeout)
        numbers: list[int] = []
        accepted = False
        try:
            async with asyncio.timeout(timeout) as limit:
                for payload in payloads:
                    data = as_bytes(payload, self.limit)
                    self._check_open(None)
                    if not self._take(len(data) + ENTRY_BYTES, None):
                        await self._room(len(data) + ENTRY_BYTES, None)
                    numbers.append(self._accepted(data, None))
                accepted = True
                if until is not None and numbers:
                    await self._arrival(numbers[-1], until)
        except NotSent as error:
            error.accepted = len(numbers)
            raise
        except TimeoutError:
            if not limit.expired():
                raise  # an error of the application's own iterable
            if accepted:
                raise late(numbers[-1], until, timeout) from None
            sent = f"{len(numbers)} messages were sent, and the others were not"
            text = self._no_room(f"{sent}: the window had no room for the others", timeout, None)
            raise Timeout(text, len(numbers)) from None
        return numbers

    async def wait(self, number: int, until: Until | None, timeout: float | None) -> None:
        """Wait until own multicast `number` is delivered or stable, or until one receiver has acknowledged it."""
        to = number.to if isinstance(number, NumberToOne) else None
        until = until or ("stable" if to is None and self.confirms else "delivered")
        self._check_how(to, until, timeout)
        if getattr(number, "birth", 0) != self.birth:
            raise unknown("the other members removed this member, which joined again,", number, until)
        if to is None and not 0 < number < self.top.unknown().stop:
            last = self.top.unknown().stop - 1
            which = f"their numbers so far are 1 to {last}" if last else "this member has sent no such message yet"
            raise UsageError(f"message {number} is not one of this member's messages to all members: {which}")
        try:
            async with asyncio.timeout(timeout):
                await self._arrived(number, until)
        except TimeoutError:
            raise late(number, until, timeout) from None

    def checked_for_place(self, payload: Payload, until: Until | None, timeout: float | None) -> bytes:
        """`payload` as as_bytes() returns it, before the search for its receiver.  Raises the errors of send()."""
        data = as_bytes(payload, self.limit)
        if self.closed is not None:
            raise ChannelClosed(self.closed) from self.cause
        if self.grouped:
            raise UsageError("to='host:port' needs profile 'unicast': use one of channel.view.members")
        if until == "stable":
            raise UsageError("until='stable' needs a group: use until='delivered', which waits for the receiver")
        self._check_how(None, until, timeout)
        return data

    def _check_how(self, to: Address | None, until: Until | None, timeout: float | None) -> None:
        check_how(to, until, timeout)
        if until == "stable" and not self.confirms:
            raise UsageError(
                "until='stable' works only where the members confirm what they have received, and in this profile none "
                "does: a message reaches all members with high probability. Leave until= out"
            )
        if until == "read" and not self.grouped:
            raise UsageError("until='read' needs a group: use until='delivered', which waits for the receiver")
        if until == "read" and not self.reading.gives_events:
            raise UsageError("until='read' needs a program that reads: open the channel without events='none'")

    # -- accepting

    async def _accept(self, data: bytes, to: Address | None) -> int:
        self._check_open(to)
        if not self._take(len(data) + ENTRY_BYTES, to):
            await self._room(len(data) + ENTRY_BYTES, to)
        return self._accepted(data, to)

    def _take(self, size: int, to: Address | None) -> bool:
        if to is not None:
            return to not in self.queues and min(size, self.window) <= self.top.room(to)
        if min(size, self.window) > self.credit:
            return False
        self.credit -= size
        return True

    def _accepted(self, data: bytes, to: Address | None) -> int:
        self.schedule()
        number = self.top.accept(data, to)
        return self.numbered(number) if to is None else NumberToOne(number, to, self.birth)

    def numbered(self, number: int) -> int:
        """The number of a multicast for the program, so that wait() knows the incarnation."""
        return LaterNumber(number, self.birth) if self.birth else number

    def _check_open(self, to: Address | None) -> None:
        if self.closed is not None:
            raise ChannelClosed(self.closed) from self.cause
        if to is None:
            if not self.grouped:
                raise UsageError("the channel has no group: name the receiver, to='host:port' or to=message.sender")
        elif not isinstance(to, Address):
            if not self.grouped:
                raise UsageError(f"to={to!r} does not name a process: write 'host:port', or use a message's sender")
            raise UsageError(f"to={to!r} is not an address: use one of channel.view.members, or a message's sender")
        elif to not in self.members():
            raise self._not_in_view(to)

    def _check_still_open(self, to: Address | None) -> None:
        """Check again after a wait: the channel may have closed, or the receiver may have left."""
        if self.closed is not None:
            raise self._too_late()
        if to is not None and to not in self.members():
            raise self._not_in_view(to)

    def _not_in_view(self, to: Address) -> NotSent:
        if self.grouped:
            return NotSent(f"the message was not sent: {to} is not in the view; choose one of channel.view.members")
        return NotSent(
            f"the message was not sent: this channel does not know the address of {to}; write to='host:port'"
        )

    def _too_late(self) -> Exception:
        kind = Withdrawn if self.rejoins else NotSent
        return because(kind(f"the message was not sent: {self.closed}"), self.cause)

    async def _room(self, size: int, to: Address | None) -> None:
        """Wait for `size` bytes of the window.  A sender that is canceled here has not sent its message."""
        if to is None:
            queue = self.queue
            self.credit = SHUT  # later senders wait too
            self.top.env.sender_waits = True
        else:
            queue = self.queues.setdefault(to, SenderQueue(self.window))
        woken = queue.join(size)
        self.schedule()
        try:
            with self.reading.guard(woken):
                await woken
            self._check_still_open(to)
        finally:
            queue.done(woken, size)
            self.schedule()

    # -- from the stack

    def turned(self) -> None:
        """A turn is over: give the free room of the windows to the waiting senders."""
        if self.closed is not None:
            return
        room = self.room() - self.queue.reserved
        if self.queue.waiting:
            room = self.queue.wake(room)
            self.top.env.sender_waits = bool(self.queue.waiting)
        self.credit = SHUT if self.queue.waiting or not self.grouped else room
        if self.queues:
            self._serve_queues()

    def _serve_queues(self) -> None:
        """Wake the senders to single members, if there is room, or if the receiver has left."""
        members = self.members()
        for to, queue in list(self.queues.items()):
            if to in members:
                queue.wake(self.top.room(to) - queue.reserved)
            else:
                queue.fail(partial(self._not_in_view, to))
            if queue.is_idle:
                del self.queues[to]

    @property
    def waiting(self) -> int:
        """The number of senders that wait for room."""
        return len(self.queue.waiting) + sum([len(queue.waiting) for queue in self.queues.values()])

    def room(self) -> int:
        """The free bytes of the window.  A message fills it until every member, this one included, has read it."""
        return min(self.top.room(), self._own_room())

    def _own_room(self) -> int:
        return self.window - (self.top.sent_bytes() - self.reading.own_read_bytes)

    def waited_for(self) -> dict[Address, int]:
        """The receivers of unicasts that wait for room, with the free bytes of their windows."""
        return {to: self.top.room(to) for to, queue in self.queues.items() if queue.waiting}

    @property
    def is_full(self) -> bool:
        """Whether the window has no room for a quarter of itself."""
        return self.room() < self.quarter

    def holders(self) -> tuple[Address, ...]:
        """The members that keep the window full, because they have read least, or because they have not received the
        messages; empty while the window is open."""
        if not self.is_full:
            return ()
        if not self._waits_for_itself():
            return self.top.waits_for()
        return self.delivery_waits_for() if self.is_undelivered else (self.top.env.me,)

    def _waits_for_itself(self) -> bool:
        """Whether the own multicasts that this program has not read take more of the window than those of others."""
        return self._own_room() <= self.top.room()

    @property
    def is_undelivered(self) -> bool:
        """Whether most of the messages in a full window were not delivered, here or at another member: then no program
        can have read them."""
        if not self._waits_for_itself():
            return not self.top.waits_for_readers()
        return 2 * self.reading.own_unread_bytes <= self.window - self._own_room()

    def _no_room(self, error: str, timeout: float | None, to: Address | None) -> str:
        """The text of a Timeout."""
        holders = self.holders() if to is None else (to,)
        do = "receive them" if to is None and self.is_undelivered else "read"
        return no_room(error, timeout, holders, self.top.env.me, do)

    # -- arriving

    async def _arrived(self, number: int, until: Until) -> None:
        if isinstance(number, NumberToOne):
            if self.ended is not None:
                raise self._without_receipt(self.ended, number) from self.cause
            await self.receipts.wait(number, self.members())
        else:
            await self._arrival(number, until)

    def _without_receipt(self, why: str, number: int) -> Exception:
        return self._unknown(why, "delivered", number)

    def _unknown(self, why: str, until: Until, number: int) -> Exception:
        return because(unknown(why, number, until), self.cause)

    async def _arrival(self, number: int, until: Until) -> None:
        self.missing.check(number)
        line = self.until[until]
        if number < line.below:
            return
        if self.ended is not None:
            raise unknown(self.ended, number, until) from self.cause
        if until == "stable":
            self.ask(StableWanted(number + 1))  # so that the members vote at once
        arrived = line.join(number)
        if until == "read":
            with self.reading.guard_read(arrived, number):
                await line.until(number, arrived)
        else:
            await line.until(number, arrived)

    def on_reached(self, reached: Reached) -> None:
        """Wake the senders whose messages are delivered or stable."""
        self.until["delivered"].reach(reached.delivered)
        self.until["stable"].reach(reached.stable)

    def on_gap(self, gap: range) -> None:
        """These own messages were delivered by members of another side, and never come here."""
        self.missing.add(gap, self.until.values())

    # -- the beginning and the end

    def open(self) -> None:
        """The channel has joined: accept messages."""
        self.closed = None
        self.turned()

    def cannot_rejoin(self, error: Exception) -> None:
        """No further incarnation follows, because of `error`."""
        self.closed, self.cause = f"the channel cannot join its group again: {error}", error

    def close(self, why: str, cause: BaseException | None = None) -> None:
        """Accept no further messages, and raise NotSent in the senders that wait for room."""
        self.cause = cause or self.cause
        if self.closed is None:
            self.closed, self.credit = why, SHUT
        for queue in (self.queue, *self.queues.values()):
            queue.fail(self._too_late)
        self.queues.clear()

    def forked(self, why: str) -> None:
        """This process is a forked child: it accepts no messages, and has no waiting senders."""
        self.closed, self.ended, self.credit = why, why, SHUT

    def give_up(self, why: str, cause: BaseException | None = None) -> None:
        """Accept no further messages, and raise Unknown in the senders that wait for `until`.  `cause`: a crash's
        error."""
        self.close(why, cause)
        self.closed = self.ended = why
        for until, line in self.until.items():
            line.fail(partial(self._unknown, why, until))
        self.receipts.end(why)
