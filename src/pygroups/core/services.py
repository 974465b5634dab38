"""The services of a stack: the words of `Layer.gives`, `needs` and `needs_above`.

A stack gives what its layers give.  Whoever must know what a group promises (a layer, a check, a rule of the audit, a
drawn schedule) asks for a service, and never for the name of a profile.  A new profile is therefore one entry in
layers/profiles.py, and a new layer says in `gives` what it adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIFO_MULTICAST: Final = "FIFO_MULTICAST"
GOSSIP: Final = "GOSSIP"
ANY_SIZE: Final = "ANY_SIZE"
MARKS: Final = "MARKS"
MEMBERSHIP: Final = "MEMBERSHIP"
MERGING: Final = "MERGING"
PRIMARY: Final = "PRIMARY"
STATE_AT_VIEW: Final = "STATE_AT_VIEW"
STREAMS: Final = "STREAMS"
TOTAL: Final = "TOTAL"
UNIFORM: Final = "UNIFORM"
VIRTUAL_SYNCHRONY: Final = "VIRTUAL_SYNCHRONY"
WINDOW: Final = "WINDOW"

SERVICES: Final[Mapping[str, str]] = {
    # of the network and of connections
    "UNICAST": "a run goes to one process, and may be lost, repeated or overtaken",
    "MULTICAST": "a run goes to all other members, and may be lost, repeated or overtaken",
    "FIFO_UNICAST": "runs to one process arrive once and in order, per connection",
    "DISCOVERY": "processes of the group are found",
    "ENDS": "the end of a connection and of a process is reported",
    "HEARTBEAT": "a member that is silent is reported",
    "SUSPICION": "members that look dead are reported after they were verified",
    # of views
    MEMBERSHIP: "views come, and a process sends to the members of its view; without it every connected peer is one",
    PRIMARY: "a majority of each view decides the next one, so views are one chain",
    MERGING: "views that a fault separated merge again",
    # of multicasts
    STREAMS: "runs are numbered in streams that stop, are asked for and end with a view",
    FIFO_MULTICAST: "the multicasts of each sender arrive once and in order, without holes",
    GOSSIP: "multicasts arrive with high probability, in the order of their sender, and a hole is announced",
    MARKS: "the numbers are known up to which all members have delivered and consumed",
    WINDOW: "an own multicast leaves the window of its sender: when all have consumed it, or when it was sent",
    VIRTUAL_SYNCHRONY: "members that go together into the next view have delivered the same multicasts",
    "BLOCK_AT_VIEW": "no multicast is sent while the view changes",
    TOTAL: "all members of a view deliver multicasts in one order",
    UNIFORM: "what any member delivers, all that continue deliver; runs are held back until all hold them",
    # above them
    "BOUNDED": "a sender waits while its window is full",
    ANY_SIZE: "a payload may be larger than a run",
    STATE_AT_VIEW: "a joiner gets the state that belongs to its first view",
}
"""Every service, with its meaning."""

ALONE_IN_A_TEST: Final = frozenset({MEMBERSHIP})  # what a layer finds that nobody has put into a stack


def waits_for_all(services: frozenset[str]) -> bool:
    """When an own multicast is no longer in flight: True when all members have it, as the marks show, and False when
    it is delivered here.  A layer that orders or holds back delivers only what the group has taken in."""
    return MARKS in services and not services & {TOTAL, UNIFORM}
