"""What members tell each other to change a view.  All of it goes on the control lane: in order, without loss."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX, TEXT_MAX
from pygroups.core.standing import Standing
from pygroups.core.view import AgreedView, Ballot, ViewId

from .suspicion import Suspicion

Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Contact = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Next = Annotated[int, Meta(ge=0, le=1 << 62)]
Members = Annotated[tuple[Address, ...], Meta(max_length=MEMBERS_MAX)]
StreamPositions = Annotated[dict[Address, Next], Meta(max_length=MEMBERS_MAX)]
OriginMarks = Annotated[dict[Address, Next], Meta(max_length=200_000)]  # marks_max and a view's worth


class Join(msgspec.Struct, array_like=True, tag=30):
    """Joiner to any member, who hands it on to whoever leads: take me in."""

    joiner: Address
    contact: Contact  # where it listens
    fingerprint: Text  # profile, stack and limits, which must be the group's


class Refuse(msgspec.Struct, array_like=True, tag=31):
    """Leader to joiner: no."""

    reason: Text  # "name taken" or "refused"
    detail: Text


class LeaveReq(msgspec.Struct, array_like=True, tag=32):
    """Member to leader, or handed on to it by another member: decide on a view without `member`."""

    view: ViewId
    member: Address


class Ready(msgspec.Struct, array_like=True, tag=33):
    """Leader to all of its view, suspects too, and to the joiners: who is there?  Nobody stops for it."""

    ballot: Ballot  # of this attempt; only names it
    view: ViewId


class ReadyRsp(msgspec.Struct, array_like=True, tag=34):
    """The answer to Ready; whoever gives it is suspected no more."""

    ballot: Ballot  # the attempt's
    view: ViewId | None  # where the answerer is; None: a joiner
    bound: Ballot | None  # what it is bound to
    leaving: bool


class Collect(msgspec.Struct, array_like=True, tag=35):
    """Leader to those who go on or leave: stop, and say what you have.  From the answer on a member is bound."""

    ballot: Ballot
    view: ViewId


class CollectAck(msgspec.Struct, array_like=True, tag=36):
    """The answer to Collect."""

    ballot: Ballot
    held: StreamPositions  # per stream, the first seq not received without a hole
    leaving: bool
    standing: Standing = True


class Low(msgspec.Struct, array_like=True, tag=37):
    """The answer to anything under a ballot that is too low."""

    ballot: Ballot  # the one that was refused
    named: Ballot  # the one that the answerer is bound to


class Side(msgspec.Struct, array_like=True):
    """An earlier view that ends with a view change, and the members that come from it."""

    old: ViewId
    members: Members  # that go on from it, in its order
    cut: StreamPositions  # per stream of the earlier view, the end of what everybody hands up
    holders: Annotated[dict[Address, Address], Meta(max_length=MEMBERS_MAX)]  # who has a stream up to the cut


class Proposal(msgspec.Struct, array_like=True):
    """The next view, and the sides that it comes from: one in a view change, several in a merge."""

    ballot: Ballot  # under which it is to be accepted
    view: AgreedView
    sides: Annotated[tuple[Side, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]
    primary: bool
    standings: Annotated[dict[Address, Standing], Meta(max_length=MEMBERS_MAX)] = {}  # of those who go on

    def side_of(self, old: ViewId) -> Side | None:
        """The side that comes from the view `old`."""
        return next((side for side in self.sides if side.old == old), None)

    @property
    def going_on(self) -> tuple[Address, ...]:
        """Those who go on from an earlier view; the other members of the view are joiners."""
        return tuple(member for side in self.sides for member in side.members)


class Propose(msgspec.Struct, array_like=True, tag=38):
    """Leader to all it asked: fetch to the cut and accept."""

    proposal: Proposal


class Accept(msgspec.Struct, array_like=True, tag=39):
    """The answer to Propose: everything up to the cut is held here."""

    ballot: Ballot


class Fetches(msgspec.Struct, array_like=True, tag=48):
    """Member to leader while Accept is awaited: what it misses is coming, and takes a while."""

    ballot: Ballot


class Install(msgspec.Struct, array_like=True, tag=40):
    """Whoever has the installation to whoever lacks it: this is decided."""

    proposal: Proposal
    starts: OriginMarks | None  # for a joiner: where each origin starts


class InstallAck(msgspec.Struct, array_like=True, tag=41):
    """The answer to Install: `view` is installed here."""

    view: ViewId


class Done(msgspec.Struct, array_like=True, tag=42):
    """Leader to all: everybody has installed `view`; the installation may be forgotten."""

    view: ViewId


class Stuck(msgspec.Struct, array_like=True, tag=43):
    """A bound member that hears nothing, to all of its view: give me the installation, or begin an attempt."""

    ballot: Ballot  # what it is bound to
    view: ViewId


class Elsewhere(msgspec.Struct, array_like=True, tag=44):
    """The answer to an Install or Collect that cannot be followed: I am in another view; in yours I count as ended."""

    view: ViewId  # where the answerer is
    asked: ViewId  # the view that was spoken of


class Excluded(msgspec.Struct, array_like=True, tag=45):
    """To a member that is still in an earlier view: we went on without you."""

    view: ViewId  # the receiver's


class Accuse(msgspec.Struct, array_like=True, tag=46):
    """Member to all of its view: these are all that I suspect by my own evidence; none, when I take it back."""

    view: ViewId
    suspects: Annotated[dict[Address, Suspicion], Meta(max_length=MEMBERS_MAX)]


class ViewReq(msgspec.Struct, array_like=True, tag=47):
    """Member to leader, or handed on to it: a view with the same members, and another provider for `member`."""

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
)
