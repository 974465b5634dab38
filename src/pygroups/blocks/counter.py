"""A counter that the members of a group share."""

from __future__ import annotations

from typing import cast

from pygroups.core.errors import UsageError

from .blocks import Blocks
from .counter_machine import LIMIT, Add, CounterMachine, Swap
from .options import DECIDED
from .wire import BlockKey


class Counter:
    """A number of 64 bits, at first 0.  No two calls of `add(1)` in the group ever return the same number.

    Only profile "uniform" has this block: in a split with another profile both sides would give the same numbers.
    A crash loses no number that a call has returned.  A call that raised Unknown may have counted: numbers can be
    missing, and none comes twice.
    """

    def __init__(self, blocks: Blocks, name: str) -> None:
        blocks.check_block("a Counter", name, DECIDED)
        self.name = name
        self._blocks = blocks
        self._key: BlockKey = ("counter", name)

    def __repr__(self) -> str:
        return f"<Counter {self.name!r}, {self.value} here>"

    @property
    def value(self) -> int:
        """The number as this process has it now; other members may have added to it meanwhile."""
        machine = cast("CounterMachine | None", self._blocks.machine(self._key))
        return 0 if machine is None else machine.value

    async def add(self, amount: int = 1, *, timeout: float | None = None) -> int:
        """Add `amount`, which may be negative.  Returns the number after it.  Raises UsageError if the number would
        leave the range of 64 bits."""
        return int(await self._blocks.call(self._key, Add(_checked(amount)), timeout=timeout))

    async def set(self, value: int, *, timeout: float | None = None) -> None:
        """Set the number."""
        await self._blocks.call(self._key, Swap(None, _checked(value)), timeout=timeout)

    async def compare_and_set(self, expected: int, value: int, *, timeout: float | None = None) -> bool:
        """Set the number if it is `expected`.  Returns whether it was set."""
        swap = Swap(_checked(expected), _checked(value))
        return bool(await self._blocks.call(self._key, swap, timeout=timeout))


def _checked(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -LIMIT <= value < LIMIT:
        raise UsageError(f"{value!r} must be a whole number of 64 bits")
    return value
