"""The senders that wait until their messages have reached a state: delivered, stable, read or acknowledged."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress


class WaitingLine:
    """Waiting senders, in the order of the numbers of their messages.

    `below`: every message below this number has reached the state.
    """

    __slots__ = ("below", "waiting")

    def __init__(self) -> None:
        self.below = 1
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # by number

    def join(self, number: int) -> asyncio.Future[None]:
        """A future for message `number`; see `until`."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        insort(self.waiting, (int(number), arrived), key=lambda waiting: waiting[0])
        return arrived

    async def until(self, number: int, arrived: asyncio.Future[None]) -> None:
        """Wait until `arrived`, the future for message `number`, is done.  A sender that is canceled leaves the
        line."""
        try:
            await arrived
        except asyncio.CancelledError:
            with suppress(ValueError):  # the future may have left the line in the same pass of the loop
                self.waiting.remove((int(number), arrived))
            raise

    def reach(self, below: int) -> None:
        """All messages below the number `below` have reached the state: wake their senders."""
        if below > self.below:
            self.below = below
        while self.waiting and self.waiting[0][0] < below:
            _, arrived = self.waiting.popleft()
            if not arrived.done():
                arrived.set_result(None)

    def fail(self, error: Callable[[int], Exception], numbers: Container[int] | None = None) -> None:
        """Raise `error(number)` in the senders of the messages `numbers`, or in all senders."""
        all_waiting, self.waiting = self.waiting, deque()
        for number, arrived in all_waiting:
            if numbers is not None and number not in numbers:
                self.waiting.append((number, arrived))
            elif not arrived.done():
                arrived.set_exception(error(number))
