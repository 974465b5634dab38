"""The events by which MERGE2 and GMS work together, and those by which MERGE2 reports on processes outside the view.

Each docstring names the direction, the sender and the receivers of the event.
"""

from __future__ import annotations

from typing import Literal

from .address import Address
from .events import Event
from .view import AgreedView, MergeId


class Occupied(Event):
    """Down, gms to merge2: whether this member takes part in a view change, or is no member; and the highest number of
    a ballot or view that it knows."""

    busy: bool
    highest: int


class Reserved(Event):
    """Up, merge2 to gms: this member takes part in this merge and in no other; None: in any."""

    merge: MergeId | None
    round_trip: int = 0  # microseconds until the slowest process of the merge answers its leader


class RoundTrips(Event):
    """Up, merge2 to gms, and down, merge2 to failure: the time, in microseconds, that each of these processes took to
    answer a question.  Before a merge, MERGE2 at the leader of the merge sends this event up.  After a merge, MERGE2 at
    each member of the merged view sends the event up and down."""

    times: dict[Address, int]


class MergeWanted(Event):
    """Up, merge2 to gms, at the leader of a merge: merge these views.

    `sides`: per view, the members of it that take part, in the view's order.  Answered by a merged view, or by
    MergeFailed.
    """

    merge: MergeId
    highest: int  # the number of the merged view must be above this
    sides: tuple[tuple[AgreedView, tuple[Address, ...]], ...]


class MergeFailed(Event):
    """Down, gms to merge2: the merge ended without a merged view."""

    merge: MergeId


class Replaced(Event):
    """Up, merge2 to gms: `newer`, another process with the name of this one, joined its view later, and is alive in
    another view.  This process ends, because no view has two members of one name."""

    newer: Address


class Accounted(Event):
    """Up, merge2 to gms, each interval while the view is not primary: the absent electors that have `ended`, for
    certain, and whether no other process of the group was found for a while (`alone`)."""

    ended: tuple[Address, ...]
    alone: bool


class SignOfLife(Event):
    """Down, merge2 to unicast2: a process outside the view sent a message, so proofs of its end do not
    count."""

    peer: Address


class StaysApart(Event):
    """Up, merge2 to the application, once for each `peer` and reason: `peer` is in another view of the same name, and
    the two views do not become one.

    `settings`: they never do, because their settings differ; `detail` names the difference with both values.  `names`:
    `detail` names a process of each view that has the same name.  `links`: it names two processes that do not hear each
    other.
    """

    peer: Address
    detail: str
    reason: Literal["names", "links", "settings"] = "settings"
