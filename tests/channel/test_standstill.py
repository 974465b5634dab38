"""For whom the sends of a channel wait, from look to look."""

from __future__ import annotations

from typing import Any, cast

from pygroups.channel.reading.consumption import Consumption
from pygroups.channel.standstill import Standstill
from pygroups.core.address import Address
from pygroups.core.events import SlowestWanted

A, B = (Address(name, "0" * 8) for name in "AB")


class Sender:
    """Outbox and top in one: a window that is full, or not."""

    def __init__(self) -> None:
        self.top = self
        self.is_full = True
        self.held: tuple[Address, ...] = ()
        self.left = 0  # bytes that have left the window
        self.is_undelivered = False
        self.asked: list[object] = []

    def room(self) -> int:
        return self.left

    def sent_bytes(self) -> int:
        return 100

    def holders(self) -> tuple[Address, ...]:
        return self.held if self.is_full else ()

    def waited_for(self) -> dict[Address, int]:
        return {}

    def ask(self, event: object) -> None:
        self.asked.append(event)


class Reading:
    """A program that has read some of its own messages."""

    def __init__(self) -> None:
        self.progress = (0, 0)
        self.own_read_bytes = 0
        self.consumption = Consumption(A, lambda: None, lambda: None, 1, 1)


def standstill() -> tuple[Standstill, Sender, Reading]:
    sender, reading = Sender(), Reading()
    return Standstill(cast(Any, sender), cast(Any, reading), A), sender, reading


def test_a_full_window_of_unknown_holders_is_asked_about() -> None:
    """A coordinator reports the names with a result of the votes, and no further result comes while nothing is read."""
    still, sender, _ = standstill()
    assert still.holders() == ()
    assert [type(event) for event in sender.asked] == [SlowestWanted]
    sender.held = (B,)
    assert still.holders() == (B,)
    sender.is_full = False
    assert still.holders() == ()
    assert len(sender.asked) == 1


def test_slow_readers_hold_a_window_of_delivered_messages() -> None:
    still, sender, _ = standstill()
    sender.held = (B,)
    assert still.slow_readers() == (B,)
    assert not still.lacks_messages(B)
    sender.held = ()
    assert still.slow_readers() == (B,), "the names are not known for a moment"
    sender.is_undelivered = True
    assert still.slow_readers() == (), "the messages are on their way"
    sender.held = (B,)
    assert (still.lacks_messages(A), still.lacks_messages(B)) == (False, True)
    sender.is_undelivered, sender.held = False, (A,)
    assert still.slow_readers() == (A,)
    sender.is_full = False
    assert still.slow_readers() == ()
