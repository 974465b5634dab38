"""The calls of a process that wait for their answers."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from pygroups.channel import Gap
from pygroups.core.errors import ChannelClosed, DeliveredElsewhere, Unknown, UsageError

from .holding import Holding
from .news import Answer


def check_timeout(timeout: float | None) -> None:
    """Raise UsageError for a timeout that is no number of seconds."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0):
        raise UsageError(f"timeout={timeout!r} must be a number of seconds, or left out")


class Call:
    """One call: its number, the number of its message once that was accepted, and its answer."""

    def __init__(self, number: int, holding: Holding | None) -> None:
        self.number = number
        self.holding = holding  # that it asks for
        self.message: int | None = None  # None: not accepted yet
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Calls:
    """The open calls by number.  Numbers count in one process, over all its incarnations."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[int, Call] = {}

    def begin(self, holding: Holding | None = None) -> Call:
        call = Call(next(self._numbers), holding)
        if holding is not None:
            holding.call = call.number
        self._open[call.number] = call
        return call

    def sent(self) -> list[Call]:
        """The open calls whose message was accepted."""
        return [call for call in self._open.values() if call.message is not None]

    def end(self, call: Call) -> None:
        self._open.pop(call.number, None)
        if call.answer.done() and not call.answer.cancelled():
            call.answer.exception()  # it counts as seen

    def on_answer(self, news: Answer) -> Holding | None:
        """A call of this process has its answer.  Returns what the call asked for, if it still waits."""
        call = self._open.get(news.ticket.call)
        if call is None or call.answer.done():
            return None
        call.answer.set_result(news.value)
        return call.holding

    def on_gap(self, gap: Gap) -> None:
        """Own messages were delivered on the other side of a split only."""
        for call in self._open.values():
            if call.message is not None and gap.first <= call.message < gap.first + gap.count:
                call.fail(DeliveredElsewhere(call.message))

    def on_left(self, reason: str) -> None:
        """This member was removed: whether the others have handled its accepted commands is not known."""
        for call in self.sent():
            if call.message is not None:
                text = f"this member has left its group ({reason}) before it could see the effect of message"
                call.fail(Unknown(f"{text} {call.message}", call.message))

    def on_end(self, why: str, cause: BaseException | None) -> None:
        """The channel has ended."""
        self.on_left(why)
        for call in self._open.values():
            error = ChannelClosed(why)
            error.__cause__ = cause
            call.fail(error)
