"""Receipts: the acknowledgements of messages to single members, and the senders that wait for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from functools import partial
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.tables import Tables

from .line import WaitingLine

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

    def __getnewargs__(self) -> tuple[int, Address, int]:  # type: ignore[override]  # for pickle and copy
        return int(self), self.to, self.birth


class LaterNumber(int):
    """The number of a message to all members, if the sender has `birth` earlier incarnations.  The messages of the
    first incarnation have plain numbers."""

    birth: int

    def __new__(cls, number: int, birth: int) -> LaterNumber:
        made = super().__new__(cls, number)
        made.birth = birth
        return made

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]  # for pickle and copy
        return int(self), self.birth


class Receipt(WaitingLine):
    """The messages to one receiver: how far it has acknowledged them, and which it did not acknowledge."""

    __slots__ = ("lost",)

    def __init__(self) -> None:
        super().__init__()
        self.lost: deque[range] = deque(maxlen=LOST_MAX)

    def is_lost(self, number: int) -> bool:
        """Whether the message was given up without an acknowledgement, as far as this member remembers."""
        forgotten = self.lost[0].start if len(self.lost) == LOST_MAX else 0
        return number < forgotten or any(number in numbers for numbers in self.lost)


class Receipts:
    """The receipts of all members of the view.  `unknown` makes the error for a message of unknown fate."""

    tables: ClassVar[Tables] = {
        "_receipts": "members_max",
        "_receipts[].lost": LOST_MAX,
        "_receipts[].waiting": "calls",
        "_receipts[].waiting[]": "fixed",
    }

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
        await receipt.until(number, receipt.join(number))

    # -- from the stack

    def delivered(self, to: Address, below: int) -> None:
        """`to` has acknowledged all messages below number `below` that are not lost."""
        self._receipts.setdefault(to, Receipt()).reach(below)

    def undelivered(self, to: Address, numbers: range) -> None:
        """`to` did not acknowledge these messages, and they are not sent again."""
        receipt = self._receipts.setdefault(to, Receipt())
        receipt.lost.append(numbers)
        receipt.fail(partial(self._unknown, _given_up(to)), range(numbers.stop))

    def installed(self, members: Container[Address]) -> None:
        """A new view: nothing more is learned about the receivers outside."""
        for to in [to for to in self._receipts if to not in members]:
            self._receipts.pop(to).fail(partial(self._unknown, _outside(to)))

    def end(self, why: str) -> None:
        """The channel has left: every wait ends with Unknown."""
        for receipt in self._receipts.values():
            receipt.fail(partial(self._unknown, why))
        self._receipts.clear()


def _outside(to: Address) -> str:
    return f"{to} is not in the view"


def _given_up(to: Address) -> str:
    return f"the connection to {to} ended"
