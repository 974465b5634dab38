"""The sentences and errors for a member that the group excludes or refuses."""

from __future__ import annotations

from typing import Final

from pygroups.core import events as core
from pygroups.core.errors import NameTaken, Refused

REMOVED: Final = "the other members removed this member from the group"
SILENT: Final = (
    "no message of this member arrived for heartbeat_timeout: its event loop was blocked, its process was stopped, or "
    "the network was cut"
)


def replaced(newer: str) -> str:
    """The sentence for a member that ended because of a newer process of its name.  `newer`: a clause about it."""
    return f"this member has ended, because {newer}; choose another name"


def excluded(policy: str, *, rejoins: bool = False) -> str:
    """The sentence for an excluded member.  `policy`: the reason of an exclusion by policy, or ""."""
    because = f"this member {policy}" if policy else SILENT
    then = "the channel joins again" if rejoins else "open a new channel to join again"
    return f"{REMOVED}, because {because}; {then}"


def refusal(event: core.Excluded) -> Refused:
    """The error for a process that the group refuses."""
    if event.reason == "left":
        return Refused("the channel left before it had joined its group")
    if event.reason == "name taken":
        return NameTaken(f"{event.detail}: choose another name, or end that process first")
    return Refused(event.detail or f"the group refuses this member: {event.reason}")
