"""What happened in a world, for people: one line for each thing, as it happens.  spacetime.py tells it as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pygroups.core.events import Block, Event, Excluded, NewView, StateArrived, Suspect, Undelivered, Unsuspect


class Story:
    """Hands one line for each thing that is news to `tell`.  The base of whatever else listens to a world."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def hear(self, now: int, who: str, what: str | Event) -> None:
        """At `now` (microseconds), to or by `who` (names, or - for all), this."""
        text = what if isinstance(what, str) else event_text(what)
        if text is not None:
            self._tell(f"{now / 1_000_000:10.6f}  {who:<12} {text}")


def event_text(event: Event) -> str | None:
    """A sentence for what a member was told, or None for what is no news."""
    if isinstance(event, NewView):
        members = " ".join(member.name for member in event.view.members)
        joined = f", joined: {_names(event.joined)}" if event.joined else ""
        left = f", left: {_names(event.left)}" if event.left else ""
        return f"view {event.view.id.number}:{event.view.id.leader.name} [{members}]{joined}{left}"
    if isinstance(event, Suspect):
        return f"suspects {event.member}" + (", proven" if event.proven else "")
    if isinstance(event, Unsuspect):
        return f"takes back the suspicion of {event.member}"
    if isinstance(event, Block):
        return "stops for a view change"
    if isinstance(event, Excluded):
        return f"is out: {event.reason}" + (f" ({event.detail})" if event.detail else "")
    if isinstance(event, Undelivered):
        return f"is told that messages {_range(event.numbers)} to {event.to} were not acknowledged"
    if isinstance(event, StateArrived) and event.last:
        return "begins with no state" if event.none else f"has the state of {event.provider}"
    return None


def _names(members: Iterable[object]) -> str:
    return " ".join(map(str, members))


def _range(numbers: range) -> str:
    return f"{numbers.start}" if len(numbers) == 1 else f"{numbers.start}..{numbers.stop - 1}"
