"""The output of `pygroups join` for an event: a line of JSON for programs, or a line of text for people."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pygroups import Address, Event, MergeView, Message, View


def line_of(event: Event) -> bytes:
    """An event as one line of JSON."""
    import pygroups

    match event:
        case pygroups.Message():
            return json_line(
                {
                    "event": "message",
                    "from": event.sender.name,
                    "number": event.number,
                    "view": event.view and [event.view.number, str(event.view.leader)],
                    "position": event.position,
                    **_content(event.payload),
                }
            )
        case pygroups.View():
            merged = isinstance(event, pygroups.MergeView)
            return json_line(
                {
                    "event": "merge" if merged else "view",
                    "id": [event.id.number, str(event.id.leader)],
                    "members": [member.name for member in event.members],
                    "addresses": [str(member) for member in event.members],
                    "coordinator": event.coordinator.name,
                    "primary": event.primary,
                    "joined": [member.name for member in event.joined],
                    "left": [member.name for member in event.left],
                    "transitional": [member.name for member in event.transitional],
                    **(_merge(event) if isinstance(event, pygroups.MergeView) else {}),
                }
            )
        case pygroups.Gap():
            subgroup = [member.name for member in event.subgroup]
            missing = {"from": event.sender.name, "first": event.first, "count": event.count, "subgroup": subgroup}
            return json_line({"event": "gap", **missing})
        case pygroups.Suspected():
            return json_line({"event": "suspected", "member": event.member.name})
        case pygroups.StaysApart():
            why = {"member": event.peer.name, "reason": event.reason, "detail": event.detail}
            return json_line({"event": "apart", **why})
        case pygroups.Undelivered():
            return json_line({"event": "undelivered", "to": event.to.name, "numbers": list(event.numbers)})
        case pygroups.JournalLost():
            return json_line({"event": "journal", "reason": event.reason})
        case pygroups.Left():
            return json_line({"event": "left", "reason": event.reason, "unknown": event.unknown})
        case _:
            fields = {name: _plain(getattr(event, name)) for name in event.__struct_fields__}
            return json_line({"event": type(event).__name__.lower(), **fields})


def _merge(event: MergeView) -> dict[str, object]:
    subgroups = [[member.name for member in subgroup] for subgroup in event.subgroups]
    winner = [member.name for member in event.winner]
    return {"subgroups": subgroups, "reset": event.reset, "winner": winner}


def _plain(value: object) -> object:
    from pygroups import Address

    return value.name if isinstance(value, Address) else value


def _content(payload: bytes) -> dict[str, str]:
    with contextlib.suppress(UnicodeDecodeError):
        return {"text": payload.decode()}
    return {"base64": base64.b64encode(payload).decode()}


def json_line(content: dict[str, Any]) -> bytes:
    """`content` as JSON, with the end of the line."""
    return msgspec.json.encode(content) + b"\n"


# -- for people


class Chat:
    """Turns the events at member `me()` into lines of text.

    `echoed`: the terminal shows what the user types, so own messages are left out.  `rejoins`: after an exclusion the
    member joins again, under another address.
    """

    def __init__(self, me: Callable[[], Address], group: str, *, echoed: bool, rejoins: bool = False) -> None:
        self._me = me
        self.group = group
        self.echoed = echoed
        self.rejoins = rejoins
        self.greeted = False

    @property
    def me(self) -> Address:
        """The address of this member, which changes when it joins again."""
        return self._me()

    def line_of(self, event: Event) -> bytes:
        """The line for `event`; empty for an event that is not shown."""
        text = self.text_of(event)
        return b"" if text is None else "".join([c if c.isprintable() else "?" for c in text]).encode() + b"\n"

    def text_of(self, event: Event) -> str | None:
        """A sentence, or None for an event that is not shown."""
        import pygroups

        match event:
            case pygroups.Message():
                return None if self.echoed and event.sender == self.me else self._said(event)
            case pygroups.MergeView() if self.greeted:
                sides = " and ".join([f"[{_names(side)}]" for side in event.subgroups])
                return f"-- {sides} are one group again; {self._members(event)}"
            case pygroups.View():
                return f"-- {self._view(event)}"
            case pygroups.Gap():
                others = _names(event.subgroup) or "members that are not in this view"
                return f"-- {_count(event.count, 'message')} of {event.sender.name} went only to {others}"
            case pygroups.Suspected():
                return f"-- {event.member.name} does not answer"
            case pygroups.StaysApart():
                return f"-- {event.peer.name} stays in another group of this name: {event.detail}"
            case pygroups.Blocked():
                return f"-- blocked: {event.reason}"
            case pygroups.Unblocked():
                return "-- no longer blocked"
            case pygroups.Undelivered():
                return (
                    f"-- {event.to.name} did not acknowledge {_count(len(event.numbers), 'message')} sent to it alone"
                )
            case pygroups.Left(reason="excluded") if self.rejoins:
                self.greeted = False
                return "-- the other members have removed you from the group; you join again"
            case pygroups.Left(reason="left" | "journal lost"):
                return "-- you have left the group"
            case _:
                return None  # trouble() prints errors on standard error

    def _said(self, event: Message) -> str:
        try:
            text = event.payload.decode()
        except UnicodeDecodeError:
            text = f"({_count(len(event.payload), 'byte')} that are not text)"
        return f"{event.sender.name}: {text}"

    def _view(self, event: View) -> str:
        if not self.greeted:
            self.greeted = True
            others = _names([member for member in event.members if member != self.me])
            company = f"with {others}" if others else "alone so far"
            return f"you are {self.me.name} in group {self.group}, {company}; each line you type goes to all members"
        changes = [
            f"{_names(members)} {what}" for members, what in ((event.joined, "joined"), (event.left, "left")) if members
        ]
        return f"{'; '.join(changes) or 'a new view'}; {self._members(event)}"

    def _members(self, event: View) -> str:
        return f"members: {_names(event.members)}"


def _names(members: Sequence[Address]) -> str:
    return ", ".join([member.name for member in members])


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def trouble(event: Event, *, leaves: bool = False, rejoins: bool = False) -> str | None:
    """The error message for an event that makes the exit code 1; None for all other events.

    `leaves`: the member leaves when its journal is lost.  `rejoins`: the member joins again after an
    exclusion, which is an error only for messages whose fate is unknown.
    """
    from pygroups import JournalLost, Left

    if isinstance(event, JournalLost):
        return f"{event.reason}; this member {'leaves' if leaves else 'continues without a journal'}"
    if not isinstance(event, Left) or event.reason in ("left", "journal lost"):
        return None
    if rejoins and event.reason == "excluded" and not event.unknown:
        return None
    unknown = f"; the fate of {_count(len(event.unknown), 'message')} is unknown" if event.unknown else ""
    if event.reason == "name taken":
        return f"this member has ended, because its group has a newer process of its name{unknown}"
    then = "The member joins again" if rejoins else "Start the command again to join as a new member"
    return (
        f"the other members removed this member ({event.reason}), because the member read nothing while others waited "
        f"to send, or was stopped or cut off{unknown}. {then}"
    )
