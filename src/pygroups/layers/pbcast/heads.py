"""The messages of PBCAST.  None of them needs a connection: a later gossip replaces a lost one, except for the start of
a joiner, which is sent until it arrives."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Loose
from pygroups.core.view import ViewId

SENDERS_MAX: Final = 64  # in one gossip, so that it fits a datagram
FORMER_MAX: Final = 8  # of them that are no members any more, for the same reason
WANTS_MAX: Final = 32  # ranges in one request, for the same reason
LACKS_MAX: Final = 32  # senders in one refusal

Number = Annotated[int, Meta(ge=0, le=1 << 62)]
Rank = Annotated[int, Meta(ge=0, le=MEMBERS_MAX - 1)]
Ranks = Annotated[bytes, Meta(max_length=MEMBERS_MAX // 8)] | Annotated[list[Rank], Meta(max_length=MEMBERS_MAX)]
"""Some ranks of a view: a bit for each rank, the lowest bit first, or a list if that is shorter."""
Numbers = Annotated[list[Number], Meta(max_length=MEMBERS_MAX)]


class Data(msgspec.Struct, Loose, array_like=True, frozen=True, tag=120):
    """On a run of multicasts, also when a member sends the run again.  The run itself has its origin and its numbers,
    which no view begins anew."""


class Gossip(msgspec.Struct, Loose, array_like=True, tag=121):
    """To some members, and by each receiver once to some others: the messages that the gossiper has.

    Ranks are those of the view `view`; a receiver that does not know this view ignores the gossip.
    """

    gossiper: Rank
    number: Number  # of this gossip, at its gossiper
    view: ViewId
    digest: Annotated[list[tuple[Rank | Address, Number]], Meta(max_length=SENDERS_MAX)]  # per sender, the number after
    # the last message that the gossiper has, without a hole; a sender outside the view has no rank
    seen: Ranks  # the members that have got this gossip, as far as the sender of this copy knows
    having: Ranks  # the members that have all messages of the digest, as far as it knows: those that are not in the
    # not-seen list of the seed, which a member leaves only when it has all these messages
    late: bool = False  # the gossiper keeps messages for members that come late


class Lacks(msgspec.Struct, Loose, array_like=True, tag=122):
    """To a member that may hold them: send me these messages of these origins, [low, high)."""

    wants: Annotated[list[tuple[Address, Number, Number]], Meta(max_length=WANTS_MAX)]


class Purged(msgspec.Struct, Loose, array_like=True, tag=123):
    """The answer to a request for messages that the sender does not hold any more: of each origin, the first message
    that it still holds, or the next one that it expects."""

    lows: Annotated[list[tuple[Address, Number]], Meta(max_length=WANTS_MAX)]


class StartReq(msgspec.Struct, Loose, array_like=True, tag=124):
    """Joiner to a member of its first view: at which message of each origin do I begin?"""

    view: ViewId
    catch_up: bool = False  # at the first one that the receiver still holds


class Starts(msgspec.Struct, array_like=True, tag=125):
    """The answer to StartReq: per rank of the view, the number of the first message."""

    view: ViewId
    starts: Numbers


HEADS = (Data, Gossip, Lacks, Purged, StartReq, Starts)
