"""When a consumed message makes a turn due: not by itself, but when a sender may wait for it."""

from __future__ import annotations

import pytest

from pygroups.channel.reading.consumption import Consumption
from pygroups.core.address import Address
from pygroups.core.events import Consumed
from pygroups.core.run import Run
from pygroups.core.top import Delivered

A, B = Address("A", "00"), Address("B", "01")
QUANTUM = 1_000


class Counted:
    """A consumption, with the turns that it asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.consumption = Consumption(
            A, lambda: self.asked.append("now"), lambda: self.asked.append("later"), 1, QUANTUM
        )

    def consume(self, first: int, size: int, *, to_one: bool = False) -> list[str]:
        run = Run(B, None, (), B, first, 0, 1, bytes(size))
        self.consumption.consume(Delivered(run, None, -1 if to_one else first))
        asked, self.asked = self.asked, []
        return asked


def test_small_multicasts_wait_for_the_next_turn() -> None:
    counted = Counted()
    assert counted.consume(1, 100) == ["later"]
    assert counted.consume(2, 100) == []
    assert counted.consumption.take() == Consumed({B: 3})
    assert counted.consume(3, 100) == ["later"]


def test_a_quantum_is_reported_at_once() -> None:
    counted = Counted()
    assert counted.consume(1, QUANTUM - 1) == ["later"]
    assert counted.consume(2, 1) == ["now"]


def test_a_message_to_one_member_is_reported_at_once() -> None:
    assert Counted().consume(1, 1, to_one=True) == ["now"]


@pytest.mark.parametrize("waiting", [1, 2])
def test_a_sender_that_waits_here_hears_at_once(waiting: int) -> None:
    counted = Counted()
    counted.consumption.senders += waiting
    assert counted.consume(1, 1) == ["now"]
    counted.consumption.senders = 0
    assert counted.consume(2, 1) == []
