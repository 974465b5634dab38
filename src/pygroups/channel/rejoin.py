"""The incarnations of a channel: after an exclusion a channel with `rejoin=True` joins again as a new one.

Each incarnation is a session of its own, with its own address, journal, window and numbers.  Senders use the newest
session.  The program reads the events of one session to their end, and then those of the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from functools import partial

from pygroups.core.address import Address
from pygroups.core.errors import Excluded, Timeout, WouldBlock
from pygroups.core.limits import SECOND
from pygroups.core.rejoin import Exclusions

from .advice import advice
from .channel_events import Event, Left
from .options import Options
from .platform import platform_of_the_loop
from .sending.demands import Payload, Until, Withdrawn, check_how
from .session import Session


class Wait:
    """The time that a call may still wait: `left` seconds, or None without a limit."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: float | None) -> None:
        self.loop = loop
        self.timeout = self.left = timeout
        self.deadline = loop.time() + timeout if isinstance(timeout, int | float) else None

    def goes_on(self) -> None:
        """A part of the wait is over."""
        if self.deadline is not None:
            self.left = max(0.0, self.deadline - self.loop.time())


class Incarnations:
    """The sessions of one channel.  `use` is called with each new session when it has joined."""

    def __init__(self, options: Options, use: Callable[[Session], None]) -> None:
        self.name = platform_of_the_loop().name(options)
        self.options = options if self.name is None else options.named(self.name.name)
        self.use = use
        self.births = 0  # sessions that were made before the newest one
        try:
            self.session = self._made()
        except BaseException:
            self._release()
            raise
        self.read = self.session  # the session whose events the program reads: the newest one, or the one before
        self.rejoining: asyncio.Task[None] | None = None
        self.exclusions = Exclusions()
        self.joined_at = 0
        self.leaving = False
        self.context = copy_context()

    async def join(self) -> None:
        """Join the group for the first time."""
        self.use(self.session)
        for line in advice(self.options):
            self.session.log.warning("%s", line)
        try:
            await self.session.join()
        except BaseException:
            self._release()
            raise
        self._note_join(self.session)

    def _made(self) -> Session:
        session = Session(self.options)
        session.sending.birth = self.births
        if self.options.rejoin:
            session.rejoins = self._excluded
        return session

    def _note_join(self, session: Session) -> None:
        self.joined_at = session.platform.clock.now()
        if session.options.name is None:  # the next incarnation has the same name
            self.options = self.options.named(session.me.name)

    # -- an exclusion

    def _excluded(self, ended: Session) -> bool:
        """The newest session was excluded.  Returns whether the channel joins again.

        The channel does not join again if the program has not read the events of the incarnation before: the unread
        events of two incarnations are the most that the channel keeps.
        """
        if self.leaving:
            return False
        if self.read is not ended:
            if not self.read.reading.ended:
                return False
            self.read = ended
        pause = self.exclusions.pause(ended.platform.clock.now() - self.joined_at)
        name = f"channel {ended.me.name} joins again"
        self.rejoining = ended.loop.create_task(self._join_again(ended, pause), name=name, context=self.context)
        self.rejoining.add_done_callback(partial(self._over, ended))
        return True

    async def _join_again(self, ended: Session, pause: int) -> None:
        session = None
        try:
            await ended.closed()  # then the port, and the lock of its journal, are free
            if pause:
                ended.log.info("the channel joins again in %g s", pause / SECOND)
                await asyncio.sleep(pause / SECOND)
            self.births += 1
            session = self._made()
            await session.join()
        except Exception as error:  # noqa: BLE001 (whatever it is: the program gets it where it reads, sends and leaves)
            if session is not None and session.crash is not None:
                ended.crash = session.crash
            ended.reading.why_ended = error
            ended.sending.cannot_rejoin(error)
            ended.log.event("the channel cannot join again: %s", error)
        else:
            session.reading.continues(ended.reading)
            self._note_join(session)
            self.session = session
            if self.options.events == "none":
                self.read = session
            self.use(session)

    def _over(self, ended: Session, join: asyncio.Task[None]) -> None:
        """The join is over.  If the program has left meanwhile, iteration ends without an error."""
        self.rejoining = None
        if join.cancelled() and self.leaving:
            ended.reading.why_ended = None

    async def settled(self) -> Session:
        """Wait until no join is in progress.  Returns the newest session, which has joined or is the last one."""
        while self.rejoining is not None:
            await asyncio.wait([self.rejoining])
        return self.session

    # -- the program

    async def send(self, payload: Payload, to: Address | None, until: Until | None, timeout: float | None) -> int:
        """As Outbox.send(), in the newest session.  A message that was not accepted before an exclusion is sent by the
        next incarnation."""
        wait = Wait(self.session.loop, timeout)
        while True:
            session = await self._open(wait)
            try:
                return await session.sending.send(payload, to, until, wait.left)
            except Withdrawn:
                if self.rejoining is None and self.session is session:
                    raise

    async def send_many(self, payloads: Iterable[Payload], until: Until | None, timeout: float | None) -> list[int]:
        """As Outbox.send_many(), in the newest session.  An exclusion ends it, because the numbers begin again."""
        wait = Wait(self.session.loop, timeout)
        session = await self._open(wait)
        return await session.sending.send_many(payloads, until, wait.left)

    async def _open(self, wait: Wait) -> Session:
        """The newest session, when it has joined."""
        if self.rejoining is None:
            return self.session
        check_how(None, None, wait.timeout)
        try:
            async with asyncio.timeout_at(wait.deadline):
                session = await self.settled()
        except TimeoutError:
            why = f"the other members removed this member, which has not joined again within {wait.timeout} s"
            raise Timeout(f"the message was not sent: {why}") from None
        wait.goes_on()
        return session

    def open_now(self) -> Session:
        """The newest session.  Raises WouldBlock while it joins."""
        if self.rejoining is not None:
            raise WouldBlock("the message was not sent: the other members removed this member, which joins again")
        return self.session

    async def next(self, *, whole: bool) -> Iterator[Event]:
        """The next events, as Inbox.next() returns them.  After the last event of an excluded incarnation those of the
        next one follow."""
        while True:
            session = self.read
            try:
                return await session.reading.next(whole=whole)
            except Excluded as error:
                newest = await self.settled()
                if newest is session and session.reading.why_ended is error:
                    raise
                if self.read is session:
                    self.read = newest

    async def leave(self) -> Left:
        """Leave the group.  A join in progress ends."""
        self.leaving = True
        if self.rejoining is not None:
            self.rejoining.cancel()
            await self.settled()
        left = None
        try:
            left = await self.session.leave()
            return left
        finally:
            self._release(left=left is not None and left.reason == "left")

    def _release(self, *, left: bool = False) -> None:
        if self.name is not None:
            self.name.release(left=left)
