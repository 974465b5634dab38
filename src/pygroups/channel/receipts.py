"""Receipts: the acknowledgements of messages to single members, and the senders that wait for one."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Final

from pygroups.core.address import Address

LOST_MAX: Final = 64  # ranges of unacknowledged messages that are remembered for each receiver


class NumberToOne(int):
    """The number of a message to one member, `to`.  Each receiver has a count of its own.

    `birth`: the number of earlier incarnations of the sender.
    """

    to: Address
    birth: int

    def __new__(cls, number: int, to: Address, birth: int = 0) -> NumberToOne:
        made = super().__new__(cls, number)
        made.to, made.birth = to, birth
        return made


class LaterNumber(int):
    """The number of a message to all members, if the sender has `birth` earlier incarnations.  The messages of the
    first incarnation have plain numbers."""

    birth: int

    def __new__(cls, number: int, birth: int) -> LaterNumber:
        made = super().__new__(cls, number)
        made.birth = birth
        return made


class Receipt:
    """The messages to one receiver: how far it has acknowledged them, and which it did not acknowledge."""

    __slots__ = ("below", "lost", "waiting")

    def __init__(self) -> None:
        self.below = 1
        self.lost: deque[range] = deque(maxlen=LOST_MAX)
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # by number

    def is_lost(self, number: int) -> bool:
        """Whether the message was given up without an acknowledgement, as far as this member remembers."""
        forgotten = self.lost[0].start if len(self.lost) == LOST_MAX else 0
        return number < forgotten or any(number in numbers for numbers in self.lost)


class Receipts:
    """The receipts of all members of the view.  `unknown` makes the error for a message of unknown fate."""

    def __init__(self, unknown: Callable[[str, int], Exception]) -> None:
        self._unknown = unknown
        self._receipts: dict[Address, Receipt] = {}

    async def wait(self, number: NumberToOne, members: Container[Address]) -> None:
        """Wait until the receiver has acknowledged message `number`.

        Raises Unknown when the message is given up, or when its receiver is not in the view.
        """
        receipt = self._receipts.get(number.to)
        if number.to not in members:
            raise self._unknown(_outside(number.to), number)
        if receipt is None:
            receipt = self._receipts[number.to] = Receipt()
        if receipt.is_lost(number):
            raise self._unknown(_given_up(number.to), number)
        if number < receipt.below:
            return
        arrived = asyncio.get_running_loop().create_future()
        insort(receipt.waiting, (int(number), arrived), key=lambda waiting: waiting[0])
        try:
            await arrived
        except asyncio.CancelledError:
            with suppress(ValueError):  # the wait may have been removed in the same pass of the loop
                receipt.waiting.remove((int(number), arrived))
            raise

    # -- from the stack

    def delivered(self, to: Address, below: int) -> None:
        """`to` has acknowledged all messages below number `below` that are not lost."""
        receipt = self._receipts.setdefault(to, Receipt())
        receipt.below = below
        while receipt.waiting and receipt.waiting[0][0] < below:
            _, arrived = receipt.waiting.popleft()
            if not arrived.done():
                arrived.set_result(None)

    def undelivered(self, to: Address, numbers: range) -> None:
        """`to` did not acknowledge these messages, and they are not sent again."""
        receipt = self._receipts.setdefault(to, Receipt())
        receipt.lost.append(numbers)
        self._fail(receipt, numbers.stop, _given_up(to))

    def installed(self, members: Container[Address]) -> None:
        """A new view: nothing more is learned about the receivers outside."""
        for to in [to for to in self._receipts if to not in members]:
            self._fail(self._receipts.pop(to), None, _outside(to))

    def end(self, why: str) -> None:
        """The channel has left: every wait ends with Unknown."""
        for receipt in self._receipts.values():
            self._fail(receipt, None, why)
        self._receipts.clear()

    def _fail(self, receipt: Receipt, below: int | None, why: str) -> None:
        while receipt.waiting and (below is None or receipt.waiting[0][0] < below):
            number, arrived = receipt.waiting.popleft()
            if not arrived.done():
                arrived.set_exception(self._unknown(why, number))


def _outside(to: Address) -> str:
    return f"{to} is not in the view"


def _given_up(to: Address) -> str:
    return f"the connection to {to} ended"
