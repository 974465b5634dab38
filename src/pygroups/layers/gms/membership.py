"""Membership: the view of this process, its leader, and the ballot to which this process is bound.

The parts of GMS share this and nothing else.  A part may use the parts that stand before it; see layer.py for the list.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar

from pygroups.core import events
from pygroups.core.address import Address
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.merge_events import Accounted, Reserved
from pygroups.core.standing import Standing
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, Ballot, MergeId, ViewId

from .decisions import decide
from .decisions.electors import Electorate, proposed
from .decisions.outgoing import Outgoing
from .decisions.proposal import Proposal, Side, differences, text_of
from .decisions.quorum import EVERYBODY, Quorum
from .decisions.suspicion import Suspicions
from .heads import Install


class Phase(Enum):
    """The phase of a process in its group, from new to gone."""

    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    GONE = "gone"


class Binding:
    """The obligations of this member from its answers to attempts, in one view."""

    tables: ClassVar[Tables] = {
        "accepted": "members",
        "held": "members",
        **under("proposal", Proposal.tables),
        **under("decided", Proposal.tables),
        **under("last", Proposal.tables),
    }

    def __init__(self, env: Env, quorum: Quorum) -> None:
        self.env = env
        self.quorum = quorum
        self.ballot: Ballot | None = None  # of the Collect that this member answered: it never resumes its view
        self.held: events.Positions = {}  # the positions in that answer
        self.merge: MergeId | None = None  # the merge to which the ballot belongs
        self.proposal: Proposal | None = None  # being fetched, or accepted
        self.accepted: dict[Address, Ballot] = {}  # the last ballot of each leader up to whose cut all is held here
        # Where a majority decides:
        self.last: Proposal | None = None  # accepted under the highest ballot of this view
        self.decided: Proposal | None = None  # follows this view, and is not installed here: runs are missing, or it
        # has no place for this member, which stays until enough members of that view have it
        self.lost: AgreedView | None = None  # the decided view that this member gave up: nobody has the missing runs

    # -- obligations

    def bind(self, ballot: Ballot, merge: MergeId | None = None) -> None:
        """From now on this member answers no ballot below `ballot`."""
        self.ballot, self.merge, self.proposal = ballot, merge, None

    def stop(self, held: events.Positions) -> None:
        """The streams have stopped, and `held` goes into the answer to Collect."""
        self.held = held
        self.record("collect")

    def fetch(self, proposal: Proposal) -> None:
        """Fetch up to the cut of `proposal`."""
        self.proposal = proposal

    def accept(self, proposal: Proposal, view: ViewId) -> None:
        """Everything up to the cut of `proposal`, which follows `view`, is held here: it may be decided."""
        self.accepted[proposal.ballot.leader] = proposal.ballot
        if self.quorum.remembers_accepted:
            self.last = proposal
        self.record("accepted", proposal, proposal.side_of(view))

    def follow(self, proposal: Proposal) -> None:
        """`proposal` is decided, and cannot be installed here yet."""
        self.decided = proposal

    def give_up(self, decided: Proposal) -> None:
        """The runs that are missing for the `decided` view are lost."""
        self.lost, self.decided = decided.view, None

    def ends(self) -> None:
        """A view was installed, or this member is gone."""
        self.ballot, self.merge, self.proposal, self.accepted = None, None, None, {}
        self.last = self.decided = self.lost = None

    # -- questions

    def lacks(self) -> ViewId | None:
        """The decided next view that names this member and is not installed here, because runs are missing; also if
        this member gave that view up."""
        if self.decided is not None and self.env.me in self.decided.view.members:
            return self.decided.view.id
        return None if self.lost is None else self.lost.id

    def has_accepted(self, ballot: Ballot) -> bool:
        """Whether `ballot` may be decided with this member's answer.  A leader that begins a later attempt in the same
        view has given up its earlier one, so only the last ballot of each leader counts."""
        return self.accepted.get(ballot.leader) == ballot

    def is_on_the_way_to(self, view: ViewId) -> bool:
        """Whether this member has accepted the view, which is not installed here."""
        return self.has_accepted(Ballot(*view)) or (self.last is not None and self.last.view.id == view)

    def record(
        self, stage: str, proposal: Proposal | None = None, side: Side | None = None, ballot: Ballot | None = None
    ) -> None:
        """Write a `flush` record, or a `merge` record of a merge: `collect`, `accepted` or `installed`, under the
        ballot of this binding or under another `ballot`."""
        if not self.env.journaling:
            return
        fields: dict[str, Any] = {"stage": stage}
        ballot = self.ballot if ballot is None else ballot
        if ballot is not None:
            fields.update(ballot_number=ballot.number, ballot_leader=ballot.leader)
        if proposal is not None and side is not None:
            fields.update(
                next_number=proposal.view.id.number,
                next_creator=proposal.view.id.leader,
                members=proposal.view.members,
                transitional=side.members,
                digest=dict(side.cut),
            )
        if proposal is not None and stage == "accepted" and self.quorum.remembers_accepted:
            fields["detail"] = text_of(proposal)  # a later process of this folder answers with it
        if proposal is not None and proposal.merges:
            fields["subgroups"] = [list(one.members) for one in proposal.sides]
            fields["digest"] = {origin: mark - 1 for origin, (mark, _) in proposal.digest.items() if mark > 1}
        merges = proposal.merges if proposal is not None else self.merge is not None
        self.env.record("merge" if merges else "flush", **fields)


class Membership(Layer):
    """The standing of this process in its group, and the messages of its parts to other members."""

    quorum: ClassVar[Quorum] = EVERYBODY  # the answers that a view change needs

    __slots__ = (
        "accounted",
        "binding",
        "electors",
        "highest",
        "inbox",
        "later",
        "leaving",
        "newer",
        "outgoing",
        "phase",
        "primary",
        "reserved",
        "standing",
        "suspicions",
        "view",
    )

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.phase = Phase.NEW
        self.view: AgreedView | None = None
        self.primary = True  # a hint, see View.primary of the channel
        self.electors: tuple[Electorate, ...] = ()  # of which the next primary view needs most
        self.accounted = Accounted((), alone=False)  # of electors outside the view
        self.standing: Standing = True  # to the group's state; state_transfer sets it, in a stack with that layer
        self.leaving = False
        self.newer: Address | None = None  # a later process of this name, for which this one ends
        self.highest = 0  # of all known ballots and views
        self.binding = Binding(env, self.quorum)
        self.reserved = Reserved(None)  # this member takes part in this merge, and in no other
        self.suspicions = Suspicions()
        self.outgoing = Outgoing()
        self.inbox: list[tuple[Address, object]] = []  # messages to itself, and messages that waited for a view
        self.later: dict[tuple[Address, type], object] = {}  # of a view that is decided and not installed here yet

    @property
    def current(self) -> AgreedView:
        """The view of this member.  A caller must first check that there is a view."""
        assert self.view is not None
        return self.view

    def knows(self, member: Address) -> bool:
        """Whether `member` is in this view.  Ballots of other processes are ignored."""
        return self.view is not None and member in self.view.members

    def may_come_to(self, view: ViewId) -> bool:
        """Whether this member may be a member of `view`, which is not installed here: it has accepted that view."""
        return self.binding.is_on_the_way_to(view)

    def helpers(self) -> tuple[Address, ...]:
        """The members that a bound member asks for the installation when it hears nothing."""
        return self.current.members

    def new_history(self) -> str:
        """The id of the history that a first view begins.  Only a group in which a majority decides has such an id: see
        primary.py."""
        return ""

    # -- the leader

    def leader(self) -> Address | None:
        """The first member of the view that is not suspected; None if all are suspected."""
        return decide.leader(self.current, self.suspicions)

    def leads(self) -> bool:
        """Whether this member leads."""
        return self.leader() == self.env.me

    def next_ballot(self) -> Ballot:
        """The ballot for the next attempt of this member."""
        return Ballot(decide.next_number(self.current, self.highest), self.env.me)

    def heard_of(self, ballot: Ballot) -> None:
        """No ballot of this member's own will be at or below this one."""
        self.rise_above(ballot.number)

    def rise_above(self, number: int) -> None:
        """No ballot of this member's own will have `number` or a lower one."""
        self.highest = max(self.highest, number)

    def keep_for_later(self, src: Address, head: object) -> None:
        """Keep a message for a view that is on its way.  Of one sender the last message of each type counts."""
        self.later[src, type(head)] = head

    def add_electors(self, proposal: Proposal) -> None:
        """This member accepts `proposal`: from now on a primary view needs most members of that view, too."""
        if proposal.primary and not self.quorum.one_chain:
            self.electors = proposed(self.electors, self.current.id, proposal.view)

    def replaced_by(self, newer: Address) -> None:
        """`newer` has the name of this member, which leaves for it."""
        self.newer = newer

    def reaches_enough(self) -> bool:
        """Whether the members that are heard are enough for a view change.  The view change may still fail."""
        silent = self.suspicions.known
        here = [m for m in self.current.members if m not in silent or m in self.outgoing.spoken_for]
        return self.quorum.may_go_on(self.current, here, self.outgoing.vouched)

    def is_missing(self, member: Address) -> bool:
        """Whether no answer of `member` can come."""
        return member in self.suspicions and member not in self.outgoing.spoken_for

    def take_vouched(self, members: Iterable[Address]) -> None:
        """Take members for which an operator vouches.  Only a group in which a majority decides uses these members: see
        primary.py."""

    # -- speaking, and leaving

    def tell(self, dest: Address | None, head: object) -> None:
        """As Layer.tell.  A message of a leader to itself goes through the inbox, and is handled as the messages of
        other members are."""
        if dest == self.env.me:
            self.inbox.append((self.env.me, head))
        else:
            super().tell(dest, head)

    def tell_others(self, members: tuple[Address, ...], head: object) -> None:
        """Send `head` to each of `members` except this member."""
        for member in members:
            if member != self.env.me:
                self.tell(member, head)

    def tell_decided(self, members: Iterable[Address], proposal: Proposal) -> None:
        """Send the decided `proposal` to each of `members` except this member."""
        for member, difference in differences(proposal, members):
            if member != self.env.me:
                self.tell(member, Install(difference, None))

    def left(self, reason: str, detail: str, cut: events.Positions | None = None, policy: str = "") -> None:
        """This process is in the group no more."""
        if self.newer is not None and reason == "excluded":
            reason, detail = "name taken", f"{self.newer} joined later under the same name"
        if self.phase is not Phase.GONE:
            self.phase, self.wake, self.inbox = Phase.GONE, NEVER, []
            self.binding.ends()
            self.above.append(events.Excluded(reason, detail or policy, cut, policy))
            self.below.append(events.Gone())
