"""The messages of MERGE2.  No such message needs a connection: a lost message is repeated, or replaced by the next
one."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import FINGERPRINT_MAX, MEMBERS_MAX, TEXT_MAX
from pygroups.core.run import Loose
from pygroups.core.view import AgreedView, MergeId, ViewId

Number = Annotated[int, Meta(ge=0, le=1 << 62)]
Contact = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Contacts = Annotated[dict[Address, Contact], Meta(max_length=MEMBERS_MAX)]


class FindReq(msgspec.Struct, Loose, array_like=True, tag=52):
    """To a process that may be in another view: which view do you have?"""

    asked_at: Number  # by the clock of the sender
    contact: Contact  # where the sender listens
    settings: Number  # the hash of the sender's fingerprint
    view: ViewId  # of the sender: its receiver may believe that the sender is in its own view
    seen: ViewId | None = None  # the last view with the receiver that the sender has heard of


class FindRsp(msgspec.Struct, Loose, array_like=True, tag=53):
    """The answer to FindReq."""

    asked_at: Number  # of the question: the asker learns how long the answer took
    id: ViewId | None  # of the view, if the question names it
    view: AgreedView | None  # otherwise


class OtherSettings(msgspec.Struct, Loose, array_like=True, tag=51):
    """The answer to a FindReq with another hash: the fingerprint of the sender.  The two groups stay apart."""

    fingerprint: Annotated[str, Meta(max_length=FINGERPRINT_MAX)]


class Sighted(msgspec.Struct, Loose, array_like=True, tag=54):
    """To the leader of a merge: these processes answered the sender, and are in other views."""

    contacts: Contacts


class MergeReq(msgspec.Struct, Loose, array_like=True, tag=55):
    """Leader of a merge to every process that may take part: do you take part?  No member stops its streams for this
    request."""

    merge: MergeId
    views: Annotated[tuple[AgreedView, ...], Meta(max_length=MEMBERS_MAX)]  # their members are asked
    round_trip: Number = 0  # microseconds until the slowest of them answers the leader


class MergeRsp(msgspec.Struct, Loose, array_like=True, tag=56):
    """The answer to MergeReq."""

    merge: MergeId
    id: ViewId | None  # of the view of the sender, if the request has it
    view: AgreedView | None  # otherwise; both None: the sender takes no part
    highest: Number = 0  # of all ballots and views that the sender knows
    hears: Annotated[tuple[Address, ...], Meta(max_length=MEMBERS_MAX)] = ()  # those asked that answer the sender
    changes: bool = False  # the sender takes no part, because its view is about to change


class MergeOver(msgspec.Struct, Loose, array_like=True, tag=73):
    """Leader of a merge that was cancelled, to every process that may be reserved for it: take part in others."""

    merge: MergeId


class GiveWay(msgspec.Struct, Loose, array_like=True, tag=68):
    """Leader of a merge to a process that takes part: `newer` has the name of the receiver, joined its view later, and
    takes part, too.  The receiver ends, because no view has two members of one name."""

    merge: MergeId
    newer: Address


class KeptApart(msgspec.Struct, Loose, array_like=True, tag=69):
    """Leader of merges that failed several times in a row, to the processes that it asked, and each of them to its
    view: two views stay apart because of `one` and `other`, a process of each."""

    reason: Literal["names", "links"]
    one: Address
    other: Address


HEADS = (FindReq, FindRsp, OtherSettings, Sighted, MergeReq, MergeRsp, MergeOver, GiveWay, KeptApart)
