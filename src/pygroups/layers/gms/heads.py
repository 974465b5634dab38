"""The messages of GMS.  All these messages use the control lane of UNICAST2: in order, without loss."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import DETAIL_MAX, FINGERPRINT_MAX, MARKS_MAX, MEMBERS_MAX, TEXT_MAX
from pygroups.core.standing import Standing
from pygroups.core.tables import Tables, under
from pygroups.core.view import HISTORY_DIGITS, AgreedView, Ballot, MergeId, ViewId

from ..streams.gaps import LACKS_MAX, TOLD_MAX, Next, OriginRanges
from .decisions.electors import TABLES, Electors
from .decisions.suspicion import Suspicion

Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Fingerprint = Annotated[str, Meta(max_length=FINGERPRINT_MAX)]
Contact = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Members = Annotated[tuple[Address, ...], Meta(max_length=MEMBERS_MAX)]
Positions = Annotated[list[Next], Meta(max_length=MEMBERS_MAX)]  # by rank in a view, without the zeros at its end
Rank = Annotated[int, Meta(ge=0, le=MEMBERS_MAX - 1)]
Ranks = Annotated[list[Rank], Meta(max_length=MEMBERS_MAX)]
OriginMarks = Annotated[dict[Address, Next], Meta(max_length=MARKS_MAX)]

OTHER_SETTINGS: Final = "refused"  # the reason of a Refuse by a group with another profile, stack or other limits

SideIndex = Annotated[int, Meta(ge=0, le=MEMBERS_MAX)]
OriginLacks = Annotated[
    dict[Address, Annotated[list[tuple[Next, Next, Ranks]], Meta(max_length=LACKS_MAX)]], Meta(max_length=TOLD_MAX)
]
MergedMarks = Annotated[dict[Address, tuple[Next, SideIndex]], Meta(max_length=MARKS_MAX)]


class Join(msgspec.Struct, array_like=True, tag=30):
    """Joiner to any member, which hands it on to the leader: the joiner wants to be a member."""

    joiner: Address
    contact: Contact  # where the joiner listens
    fingerprint: Fingerprint  # profile, stack and limits, which must be the group's


class Refuse(msgspec.Struct, array_like=True, tag=31):
    """To a joiner: the group refuses the joiner.  The leader refuses a name that is in use.  Each member that the
    joiner asks refuses other settings."""

    reason: Text  # "name taken" or OTHER_SETTINGS
    detail: Annotated[str, Meta(max_length=DETAIL_MAX)]


class LeaveReq(msgspec.Struct, array_like=True, tag=32):
    """To the leader, from `member` or handed on by another member: decide a view without `member`."""

    view: ViewId
    member: Address


class Ready(msgspec.Struct, array_like=True, tag=33):
    """Leader to all members of its view, suspected ones too, and to the joiners: are you there?  No member
    stops for it."""

    ballot: Ballot  # of the attempt; it only names the attempt
    view: ViewId


class ReadyRsp(msgspec.Struct, array_like=True, tag=34):
    """The answer to Ready.  The sender of the answer is suspected no more."""

    ballot: Ballot  # the attempt's
    view: ViewId | None  # the view of the sender; None for a joiner
    bound: Ballot | None  # the ballot to which the sender is bound
    leaving: bool


class Collect(msgspec.Struct, array_like=True, tag=35):
    """Leader to the members that go on or leave: stop, and report the held runs.  The answer binds its sender."""

    ballot: Ballot
    view: ViewId  # of the receiver
    merge: MergeId | None = None  # the leader may be in another view: several views are to be merged
    vouched: Members = ()  # of the view: an operator vouches that their processes have ended for good


class CollectAck(msgspec.Struct, array_like=True, tag=36):
    """The answer to Collect."""

    ballot: Ballot
    held: Positions  # per stream, in the order of the sender's view, the first seq not received without a hole
    leaving: bool
    standing: Standing = True
    primary: bool = True  # the hint of the sender's view
    marks: OriginMarks = {}  # of a merge: per origin, the number after the last message that the sender holds
    accepted: Difference | None = None  # where a majority decides: the last that the sender accepted in this view
    vouched: Members = ()
    electors: Electors = ()  # of the sender; () stands for the members of its view alone
    ended: Members = ()  # absent electors that have ended for certain
    alone: bool = False  # no other process of the group is found
    missing: OriginRanges | None = {}  # of a merge: the messages below `marks` that the sender never delivers; None:
    # too many to tell, and no gap names the sender


class CollectRefused(msgspec.Struct, array_like=True, tag=50):
    """To the leader of a merge: the sender takes no part.  The sender is in another view, or busy with another
    change."""

    ballot: Ballot


class Low(msgspec.Struct, array_like=True, tag=37):
    """The answer to a message under a ballot that is too low."""

    ballot: Ballot  # the one that was refused
    named: Ballot  # the one to which the sender is bound


class SideEnd(msgspec.Struct, array_like=True):
    """The end of an earlier view on the wire.  The members are ranks in that view: the receiver knows the members of
    its view, and gets another view in full."""

    old: ViewId
    view: AgreedView | None  # with the id `old`; None: the receiver is in it
    out: Ranks  # of the members that do not go on
    cut: Positions  # per stream, the end of the runs that all members of the side hand up
    holders: Ranks  # per stream in `cut`, one that holds it
    marks: OriginMarks = {}


DECIDED: Final[Tables] = {
    "digest": "marks",
    "digest[]": "fixed",
    "expelled": "members_max",
    "lacks": "marks",
    "lacks[]": LACKS_MAX,
    "lacks[][]": "fixed",
    "lacks[][][]": "members_max",
    "sides": "members_max",
    "sides[].cut": "members_max",
    "sides[].holders": "members_max",
    "sides[].marks": "marks",
    "sides[].view.contacts": "members_max",
    "sides[].view.members": "members_max",
    "standings": "members_max",
    "standings[].failed": "members_max",
    **under("electors", TABLES),
}
"""The rows of a proposal, whole or as its difference."""


class Difference(msgspec.Struct, array_like=True):
    """A proposal on the wire, as its difference to the earlier views: see proposal.py."""

    tables: ClassVar[Tables] = {
        **DECIDED,
        "joiners": "members_max",
        "sides[].out": "members_max",
        "sides[].view.since": "members_max",
    }

    ballot: Ballot
    id: ViewId  # of the next view
    history: Annotated[str, Meta(max_length=HISTORY_DIGITS)]
    sides: Annotated[tuple[SideEnd, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]
    joiners: Annotated[dict[Address, Contact], Meta(max_length=MEMBERS_MAX)]
    electors: Electors  # that the next view carries; () if it is primary
    standings: Annotated[dict[Rank, Standing], Meta(max_length=MEMBERS_MAX)]  # by rank among those that go on; a member
    # without one has the standing of the member before it
    expelled: Annotated[dict[Address, Text], Meta(max_length=MEMBERS_MAX)] = {}
    digest: MergedMarks = {}
    winner: SideIndex | None = None
    lacks: OriginLacks | None = {}  # by rank in the merged view: see proposal.py

    def follows(self, view: ViewId) -> bool:
        """Whether `view` is one of the earlier views."""
        return any(side.old == view for side in self.sides)


class Propose(msgspec.Struct, array_like=True, tag=38):
    """Leader to all members that answered Collect: fetch up to the cut, and accept."""

    difference: Difference


class Accept(msgspec.Struct, array_like=True, tag=39):
    """The answer to Propose: the sender holds everything up to the cut."""

    ballot: Ballot


class Fetches(msgspec.Struct, array_like=True, tag=48):
    """Member to leader, before Accept: the sender still fetches, and runs arrive."""

    ballot: Ballot


class Install(msgspec.Struct, array_like=True, tag=40):
    """A member that has the installation to a process that lacks it: this proposal is decided."""

    difference: Difference
    starts: OriginMarks | None  # for a joiner: where each origin starts


class InstallAck(msgspec.Struct, array_like=True, tag=41):
    """The answer to Install: the sender has installed `view`."""

    view: ViewId


class Done(msgspec.Struct, array_like=True, tag=42):
    """Leader to all members: all have installed `view`, and the installation may be forgotten."""

    view: ViewId


class Stuck(msgspec.Struct, array_like=True, tag=43):
    """A bound member that hears nothing, to all members of its view: send the installation, or begin an attempt."""

    ballot: Ballot  # to which the sender is bound
    view: ViewId
    vouched: Members = ()
    lacks: ViewId | None = None  # the decided next view, if runs of its cut are missing at the sender


class Elsewhere(msgspec.Struct, array_like=True, tag=44):
    """The reply of a process that cannot follow: it is in another view, and counts as ended in the view asked about."""

    view: ViewId  # the view of the sender
    asked: ViewId  # the view asked about


class Excluded(msgspec.Struct, array_like=True, tag=45):
    """To a process that is still in an earlier view: the others went on without it."""

    view: ViewId  # the view of the receiver
    reason: Text = ""  # if it was excluded by policy


class Accuse(msgspec.Struct, array_like=True, tag=46):
    """Member to all members of its view: all that the sender suspects by its own evidence.  Empty takes it back."""

    view: ViewId
    suspects: Annotated[dict[Address, Suspicion], Meta(max_length=MEMBERS_MAX)]


class Expel(msgspec.Struct, array_like=True, tag=49):
    """Member to all members of its view: exclude `member` by policy, because it keeps the window of the sender full."""

    view: ViewId
    member: Address
    reason: Text
    if_silent: bool  # only if it leaves Ready unanswered


class ViewReq(msgspec.Struct, array_like=True, tag=47):
    """To the leader, from `member` or handed on: make a view with the same members, to get another state provider."""

    view: ViewId
    member: Address


HEADS = (
    Join,
    Refuse,
    LeaveReq,
    Ready,
    ReadyRsp,
    Collect,
    CollectAck,
    CollectRefused,
    Low,
    Propose,
    Accept,
    Fetches,
    Install,
    InstallAck,
    Done,
    Stuck,
    Elsewhere,
    Excluded,
    Accuse,
    ViewReq,
    Expel,
)
