"""The members that get a member's heartbeats, and the allowed silence of each member.

In a small view each heartbeat goes to all other members.  In a large view each heartbeat goes to the neighbors in the
view's order, and to as many of the other members in turn.  The heartbeats of a member therefore cost the same in every
large view, and all members still hear each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.detection import far_beats
from pygroups.core.limits import Config


class Neighbors(NamedTuple):
    """The other members of a view, as the receivers of one member's heartbeats."""

    near: tuple[Address, ...]  # at each heartbeat
    far: tuple[Address, ...]  # in turn, in the order of the view
    share: int  # of `far`, at one heartbeat

    def receivers(self, beat: int) -> tuple[Address, ...]:
        """The members that get the heartbeat number `beat`, from 0."""
        if not self.far:
            return self.near
        begin = beat * self.share % len(self.far)
        turned = self.far[begin:] + self.far[:begin]
        return self.near + turned[: self.share]


def neighbors(members: Sequence[Address], me: Address, config: Config) -> Neighbors:
    """The members of a view as the receivers of the heartbeats of `me`."""
    rank = members.index(me)
    others = (*members[rank + 1 :], *members[:rank])
    aside = config.heartbeat_neighbors
    if not far_beats(config, len(members)):
        return Neighbors(others, (), 0)
    return Neighbors(others[:aside] + others[-aside:], others[aside:-aside], 2 * aside)


def silences(view: Neighbors, config: Config) -> dict[Address, int]:
    """The allowed silence of each other member, in microseconds."""
    near = dict.fromkeys(view.near, config.heartbeat_timeout)
    rest = far_beats(config, 1 + len(view.near) + len(view.far)) * config.heartbeat
    return near | dict.fromkeys(view.far, config.heartbeat_timeout + rest)
