"""The events of a run as text: the interface of listeners, and one line for each event.  spacetime.py makes a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pygroups.core.address import Address
from pygroups.core.events import Block, Blocked, Event, Excluded, NewView, Unblocked, Undelivered
from pygroups.core.state_events import StateArrived
from pygroups.core.suspicion_events import Suspect, Unsuspect
from pygroups.core.trace import Crossing


class Sent(Event):
    """The stack took message `number` from the application: a multicast, or a unicast for the member `to`."""

    number: int
    to: Address | None


class Crossed(Event):
    """An item crossed a border between two layers of the member.  Only a traced world reports such crossings."""

    crossing: Crossing


class Story(Protocol):
    """A listener for the events of a world."""

    def hear(self, now: int, who: str, what: str | Event) -> None:
        """Take the event `what` at `now` (microseconds).  `who` is a name, several names with blanks between them,
        or - for all."""


class Lines:
    """Passes a line to `tell` for each event that has a text."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def hear(self, now: int, who: str, what: str | Event) -> None:
        """Pass the line of the event `what` of `who` at `now` (microseconds) on; see Story."""
        text = what if isinstance(what, str) else event_text(what)
        if text is not None:
            self._tell(f"{now / 1_000_000:10.6f}  {who:<12} {text}")


class Followed(Lines):
    """The lines of a traced world: every crossing, or, with a message, only those of this message."""

    def __init__(self, tell: Callable[[str], None], message: tuple[str, int] | None = None) -> None:
        super().__init__(tell)
        self._message = message  # the sender, by name or address, and the number

    def hear(self, now: int, who: str, what: str | Event) -> None:
        """Pass the line of the event on, unless the event is a crossing of another message; see Story."""
        if isinstance(what, Crossed) and self._message is not None and not what.crossing.carries(*self._message):
            return
        super().hear(now, who, what)


def event_text(event: Event, name: Callable[[Address], str] = str) -> str | None:
    """A sentence for an event of a member; None for an event without a text.  `name` gives the label of a member."""
    if isinstance(event, Crossed):
        return str(event.crossing)
    if isinstance(event, NewView):
        number, leader = event.view.id
        joined = f", joined: {_names(event.joined, name)}" if event.joined else ""
        left = f", left: {_names(event.left, name)}" if event.left else ""
        members = _names(event.view.members, lambda member: member.name)
        return f"view {number}:{leader.name} [{members}]{joined}{left}"
    if isinstance(event, Suspect):
        return f"suspects {name(event.member)}" + (", proven" if event.proven else "")
    if isinstance(event, Unsuspect):
        return f"no longer suspects {name(event.member)}"
    if isinstance(event, Block):
        return "is blocked for a view change"
    if isinstance(event, Blocked):
        return f"is blocked: {event.reason}"
    if isinstance(event, Unblocked):
        return "reaches a majority again"
    if isinstance(event, Excluded):
        return f"is no longer in the group: {event.reason}" + (f" ({event.detail})" if event.detail else "")
    if isinstance(event, Undelivered):
        return f"learns that messages {span(event.numbers)} to {name(event.to)} were not acknowledged"
    if isinstance(event, StateArrived) and event.last:
        return "begins without a state" if event.none else f"received the state of {name(event.provider)}"
    return None


def span(numbers: range) -> str:
    """`3`, or `3..5` for range(3, 6)."""
    return f"{numbers.start}" if len(numbers) == 1 else f"{numbers.start}..{numbers.stop - 1}"


def _names(members: Iterable[Address], name: Callable[[Address], str]) -> str:
    return " ".join(map(name, members))
