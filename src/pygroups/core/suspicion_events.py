"""The events about suspected processes: FAILURE observes, VERIFY_SUSPECT verifies, GMS decides.

Each docstring names the direction, the sender and the receivers of the event.
"""

from __future__ import annotations

from .address import Address
from .events import Event
from .view import ViewId


class Silent(Event):
    """Up, failure to verify_suspect: no frame of `member` arrived during the heartbeat timeout."""

    member: Address


class Proven(Event):
    """Up, failure to verify_suspect: `member`'s process seems to have ended.  A later Heard withdraws this event."""

    member: Address


class Heard(Event):
    """Up, failure to verify_suspect: a frame of `member` arrived, after Silent or Proven."""

    member: Address


class Suspect(Event):
    """Up, verify_suspect to gms and all above: `member` is suspected to have crashed."""

    member: Address
    proven: bool  # a new connection was refused.  Unsuspect follows if a frame of the same incarnation arrives


class Unsuspect(Event):
    """Up, verify_suspect to gms and all above: the suspicion of `member` ends, because a frame of it arrived."""

    member: Address


class VerifyLife(Event):
    """Down, gms to failure: check whether `member`'s process runs.  Answered by LifeVerified, or by Suspect(proven)."""

    member: Address


class LifeVerified(Event):
    """Up, failure to gms: `member` answered."""

    member: Address


class LifeOver(Event):
    """Up, failure to merge2: a connection to `member`, in the view or not, was refused.

    `certain`: its process has ended, because another one listens there.  Otherwise a firewall may have refused.
    """

    member: Address
    certain: bool


class HeartbeatOf(Event):
    """Up, failure and merge2 to gms: a heartbeat or a question of `member` names `view`.  Either `view` is not this
    member's view, or this member's view does not contain `member`."""

    member: Address
    view: ViewId
