"""The messages of HINTS.  The admission of joiners uses two messages of GMS: Join and Refuse."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Loose
from pygroups.core.view import AgreedView, ViewId

from ..gms.heads import Contact, Join, Ranks, Refuse


class Announce(msgspec.Struct, Loose, array_like=True, tag=110):
    """Leader to all members of the next view, and of its own view if it leaves: the next view, as its difference to
    the view before.  A lost announcement is repaired: heartbeats and gossips name the view of their sender."""

    id: ViewId
    previous: ViewId
    left: Ranks  # in the previous view
    joined: Annotated[dict[Address, Contact], Meta(max_length=MEMBERS_MAX)]
    primary: bool


class SideOf(msgspec.Struct, array_like=True):
    """The members of a merged view that come from one earlier view, as ranks in the merged view."""

    view: ViewId
    ranks: Ranks


class Whole(msgspec.Struct, array_like=True, tag=111):
    """To a joiner, to a member that lacks the view, and to all members of a merged view: the whole view."""

    view: AgreedView
    primary: bool
    sides: Annotated[tuple[SideOf, ...], Meta(max_length=MEMBERS_MAX)] = ()  # of a merged view


class ViewReq(msgspec.Struct, Loose, array_like=True, tag=112):
    """To a member that named the view `id`, which the sender lacks: send me your view."""

    id: ViewId


class Accuse(msgspec.Struct, array_like=True, tag=113):
    """To the leader, from `accuser` or handed on by another member: `accuser` suspects `member`."""

    view: ViewId
    member: Address
    accuser: Address


class LeaveReq(msgspec.Struct, array_like=True, tag=114):
    """To the leader: the sender wants to leave."""

    view: ViewId


class Bye(msgspec.Struct, array_like=True, tag=115):
    """Leader to a member that left: the view `id` is without it."""

    id: ViewId


HEADS = (Announce, Whole, ViewReq, Accuse, LeaveReq, Bye, Join, Refuse)
