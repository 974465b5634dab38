"""An attempt at a view change: from Ready to the decision, as a pure machine.

`STEPS` is the whole course of an attempt: per stage and input the next stage, and the deed of its leader.  The picture
in docs/layers/gms.md is drawn from this table.  An input without a row, such as a late or a false answer, is ignored.
view_change.py begins attempts, passes inputs to them, and carries out their deeds.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions.electors import TABLES
from pygroups.layers.streams.gaps import MISSING_MAX

from ..heads import Accept, CollectAck, Difference, Fetches, Low
from . import decide
from .electors import Electorate
from .proposal import Proposal, Side, proposal_of
from .quorum import EVERYBODY, Quorum


class Stage(Enum):
    """The answers that an attempt waits for; the last five are its ends."""

    READY = "Ready"  # members report that they are there
    COLLECT = "Collect"  # members report the runs that they hold
    PROPOSE = "Propose"  # members report that they hold everything up to the cut
    DECIDED = "decided"
    UNNEEDED = "not needed"
    FAILED = "failed"
    GIVEN_UP = "given up"
    OVERTAKEN = "overtaken"


ENDS: Final = (Stage.DECIDED, Stage.UNNEEDED, Stage.FAILED, Stage.GIVEN_UP, Stage.OVERTAKEN)


class Input(Enum):
    """The events of an attempt."""

    WANTED = "the roll call ends, and a change is due"
    CALM = "the roll call ends, and no change is due"
    FEW = "the roll call ends, and a majority is needed and missing"
    HELD = "CollectAck"
    ALL_HELD = "the last CollectAck that is needed"
    ACCEPT = "Accept"
    AGREED = "the last Accept that is needed"
    FETCHES = "Fetches"
    LOW = "Low"
    LATE = "no answer in time"
    SUSPECTED = "a member that was asked is suspected"
    OUTRANKED = "another member leads"
    OVERTAKEN = "this member answers a higher ballot"


class Deed(Enum):
    """The next action of an attempt's leader."""

    COLLECT = "send Collect"
    PROPOSE = "send Propose"
    INSTALL = "send Install"
    WAIT_ON = "restart the timeout"
    AGAIN_NOW = "retry at once"
    AGAIN_LATER = "retry after a pause"
    AGAIN_MUCH_LATER = "retry after a long pause"
    HAND_ON = "send Stuck to the leader"
    NOTHING = "nothing"


class AttemptStep(NamedTuple):
    """A row of the table."""

    stage: Stage  # the next
    deed: Deed


STEPS: Final[dict[tuple[Stage, Input], AttemptStep]] = {
    (Stage.READY, Input.WANTED): AttemptStep(Stage.COLLECT, Deed.COLLECT),
    (Stage.READY, Input.CALM): AttemptStep(Stage.UNNEEDED, Deed.NOTHING),
    (Stage.READY, Input.FEW): AttemptStep(Stage.FAILED, Deed.AGAIN_MUCH_LATER),
    (Stage.READY, Input.OUTRANKED): AttemptStep(Stage.GIVEN_UP, Deed.NOTHING),
    (Stage.COLLECT, Input.HELD): AttemptStep(Stage.COLLECT, Deed.WAIT_ON),
    (Stage.COLLECT, Input.ALL_HELD): AttemptStep(Stage.PROPOSE, Deed.PROPOSE),
    (Stage.COLLECT, Input.LOW): AttemptStep(Stage.FAILED, Deed.AGAIN_LATER),
    (Stage.COLLECT, Input.LATE): AttemptStep(Stage.FAILED, Deed.AGAIN_LATER),
    (Stage.COLLECT, Input.SUSPECTED): AttemptStep(Stage.FAILED, Deed.AGAIN_NOW),
    (Stage.COLLECT, Input.OUTRANKED): AttemptStep(Stage.GIVEN_UP, Deed.HAND_ON),
    (Stage.COLLECT, Input.OVERTAKEN): AttemptStep(Stage.OVERTAKEN, Deed.NOTHING),
    (Stage.PROPOSE, Input.ACCEPT): AttemptStep(Stage.PROPOSE, Deed.WAIT_ON),
    (Stage.PROPOSE, Input.FETCHES): AttemptStep(Stage.PROPOSE, Deed.WAIT_ON),
    (Stage.PROPOSE, Input.AGREED): AttemptStep(Stage.DECIDED, Deed.INSTALL),
    (Stage.PROPOSE, Input.LOW): AttemptStep(Stage.FAILED, Deed.AGAIN_LATER),
    (Stage.PROPOSE, Input.LATE): AttemptStep(Stage.FAILED, Deed.AGAIN_LATER),
    (Stage.PROPOSE, Input.SUSPECTED): AttemptStep(Stage.FAILED, Deed.AGAIN_NOW),
    (Stage.PROPOSE, Input.OUTRANKED): AttemptStep(Stage.GIVEN_UP, Deed.HAND_ON),
    (Stage.PROPOSE, Input.OVERTAKEN): AttemptStep(Stage.OVERTAKEN, Deed.NOTHING),
}


class Attempt:
    """One try at the view that follows `view`.  An attempt sends nothing and knows no clock: the caller gives times,
    and gets the deeds to do."""

    tables: ClassVar[Tables] = {
        "accepted": "members_max",
        "answers": "members",
        "answers[].ended": "members_max",
        "answers[].held": "members_max",
        "answers[].marks": "marks",
        "answers[].missing": "marks",
        "answers[].missing[]": MISSING_MAX,
        "answers[].missing[][]": "fixed",
        "answers[].standing.failed": "members_max",
        "answers[].vouched": "members_max",
        "asked": "members",
        "joiners": "members_max",
        "vouched": "members",
        **under("answers[].accepted", Difference.tables),
        **under("answers[].electors", TABLES),
        **under("proposal", Proposal.tables),
    }

    def __init__(
        self,
        view: AgreedView,
        ballot: Ballot,
        joiners: Mapping[Address, str],
        now: int,
        quorum: Quorum = EVERYBODY,
        vouched: Collection[Address] = (),
        lost: AgreedView | None = None,
    ) -> None:
        self.view = view
        self.ballot = ballot  # of its Ready, later of its Collect
        self.stage = Stage.READY
        self.since = now  # when the stage began, or an answer came in it
        self.joiners = dict(joiners)  # and where each listens
        self.quorum = quorum
        self.vouched = vouched  # members that do not count: an operator vouches that they have ended for good
        self.asked: tuple[Address, ...] = ()  # the members that were sent Collect
        self.answers: dict[Address, CollectAck] = {}
        self.proposal: Proposal | None = None
        self.accepted: dict[Address, None] = {}
        self.lost = lost  # a next view that may have been installed, and is not repeated: no member holds its runs

    def take(self, what: Input) -> Deed | None:
        """Go on to the next stage; returns the deed, or None for an input without a meaning in this stage."""
        step = STEPS.get((self.stage, what))
        if step is None:
            return None
        self.stage = step.stage
        return step.deed

    def silent(self) -> list[Address]:
        """The members whose answer this stage waits for."""
        heard = self.answers if self.stage is Stage.COLLECT else self.accepted
        return [member for member in self.asked if member not in heard]

    # -- actions of the leader

    def goes_without(self, joiner: Address) -> None:
        """`joiner` is not taken in."""
        self.joiners.pop(joiner, None)

    def collects(self, ballot: Ballot, asked: Iterable[Address], now: int) -> None:
        """Collect is sent to `asked`, under `ballot`."""
        assert self.stage is Stage.COLLECT
        self.ballot, self.asked, self.since = ballot, tuple(asked), now

    def proposes(
        self,
        me: Address,
        leavers: Container[Address],
        now: int,
        expelled: Mapping[Address, str] = MappingProxyType({}),
    ) -> Proposal:
        """The next view; the cut is the furthest position that one of the asked members holds, leavers included.  If
        all members leave or are expelled, `me` goes on, and a leaving `me` leaves one view later.  A proposal that may
        have been decided is repeated."""
        assert self.stage is Stage.PROPOSE
        self.since = now
        self.proposal = self.quorum.taken_over(self.view, self.ballot, self.answers)
        lost = self.proposal is not None and not _is_held(self.proposal)
        if self.proposal is not None and not lost:
            self.lost, self.proposal = None, self._in_its_history(self.proposal)
            return self.proposal
        if self.proposal is not None:
            self.lost = self.proposal.view
        ended = {member for member, answer in self.answers.items() if answer.leaving} | {*self.vouched}
        leaving = {m: None for m in self.asked if m in leavers or m in expelled or m in ended}
        go_on = tuple(member for member in self.asked if member not in leaving) or (me,)
        if me not in go_on:
            self.joiners = {}  # only members that install the view know where each origin starts
        self.joiners = dict(list(self.joiners.items())[: self.quorum.joiners_max(len(go_on))])
        held = {member: answer.held for member, answer in self.answers.items()}
        cut, holders = decide.cut(held, self.view.members, me)
        self.proposal = Proposal(
            self.ballot,
            decide.next_view(self.view, self.ballot, go_on, self.joiners, self._history(lost=lost)),
            (Side(self.view, go_on, cut, holders),),
            () if self.quorum.one_chain else self._electors(go_on, leaving),
            {member: self.answers[member].standing for member in go_on if member in self.answers},
            {member: why for member, why in expelled.items() if member in self.view.members and member not in go_on},
        )
        return self.proposal

    def _electors(self, go_on: tuple[Address, ...], leaving: Container[Address]) -> tuple[Electorate, ...]:
        """The electors that the next view carries.  Members that leave by themselves are electors no more; members that
        the others exclude may still take part in another view."""
        left = [m for m, answer in self.answers.items() if answer.leaving and m in leaving and m not in go_on]
        ended = [member for answer in self.answers.values() for member in answer.ended]
        alone = all(answer.alone for answer in self.answers.values())
        return decide.electors_of_next(self.ballot, self._known_electors(), go_on, left, ended, alone=alone)

    def _known_electors(self) -> Iterator[Electorate]:
        """The electors that the members answered."""
        for member, answer in self.answers.items():
            view = self.view_of(member)
            yield from answer.electors or (Electorate(view, "formed"),)
            if not answer.primary:
                yield Electorate(view, "followed")

    def view_of(self, member: Address) -> AgreedView:
        """The view from which `member` comes."""
        return self.view

    def _history(self, *, lost: bool = False) -> str | None:
        """The id of the new history that begins with the next view; None if the same history goes on.  A new history
        begins if the members that answered are not a quorum of the full view, because an operator vouches for other
        members: the facts that only those members knew are lost.  A new history also begins if runs are `lost` that a
        member may have delivered."""
        if self.quorum.may_go_on(self.view, self.answers, ()) and not lost:
            return None
        return decide.next_history(self.view, self.ballot)

    def _in_its_history(self, taken: Proposal) -> Proposal:
        """A proposal that is taken over stays the same view, unless a new history begins now.  One that begins a new
        history itself may have been decided in it."""
        history = self._history()
        if history is None or taken.view.history != self.view.history:
            return taken
        view = msgspec.structs.replace(taken.view, id=ViewId.of(self.ballot), history=history)
        return msgspec.structs.replace(taken, view=view)

    # -- answers

    def on_collect_ack(self, src: Address, head: CollectAck, now: int) -> Deed | None:
        """`src` is bound, and reports the runs that it holds."""
        if self.stage is not Stage.COLLECT or head.ballot != self.ballot or src not in self.asked:
            return None
        if head.accepted is not None and proposal_of(head.accepted, self.view) is None:
            return None
        self.answers[src], self.since = head, now
        answered = self.quorum.must_answer(self.view, self.asked, self.answers, self.vouched)
        enough = answered and not self._lacks_a_holder()
        return self.take(Input.ALL_HELD if enough else Input.HELD)

    def _lacks_a_holder(self) -> bool:
        """Whether a member without an answer may hold the runs of a proposal that has to be repeated, and no other
        member holds these runs."""
        taken = self.quorum.taken_over(self.view, self.ballot, self.answers)
        open = [one for one in self.view.members if one not in self.answers and one not in self.vouched]
        return taken is not None and not _is_held(taken) and bool(open)

    def on_accept(self, src: Address, head: Accept, now: int) -> Deed | None:
        """`src` holds everything up to the cut."""
        if self.stage is not Stage.PROPOSE or self.proposal is None or head.ballot != self.ballot:
            return None
        if src not in self.asked:
            return None
        self.accepted[src], self.since = None, now
        anew = self.proposal.view.history != self.view.history
        vouched = self.vouched if anew else ()
        decided = self.quorum.decides(self.view, self.proposal, self.accepted, vouched)
        return self.take(Input.AGREED if decided and not self._may_go_on_in_what_is_lost() else Input.ACCEPT)

    def _may_go_on_in_what_is_lost(self) -> bool:
        """Whether a view in place of which a new history begins may still be followed by another one.  Its joiners may
        have installed it.  A member that accepts the new history answers in that view no more."""
        if self.lost is None:
            return False
        rest = [one for one in self.lost.members if one not in self.accepted and one not in self.vouched]
        return self.quorum.may_go_on(self.lost, rest, self.vouched)

    def on_fetches(self, src: Address, head: Fetches, now: int) -> Deed | None:
        """`src` fetches its missing runs; another attempt would not help this member."""
        if self.stage is not Stage.PROPOSE or head.ballot != self.ballot:
            return None
        if src not in self.asked or src in self.accepted:
            return None
        self.since = now
        return self.take(Input.FETCHES)

    def on_low(self, head: Low) -> Deed | None:
        """A member is bound to a higher ballot."""
        return self.take(Input.LOW) if head.ballot == self.ballot else None

    def late(self) -> Deed | None:
        """An answer did not come in time."""
        return self.take(Input.LATE)

    def overtaken(self, ballot: Ballot) -> Deed | None:
        """This member answered the `ballot` of another leader."""
        return self.take(Input.OVERTAKEN) if ballot > self.ballot else None


def _is_held(proposal: Proposal) -> bool:
    """Whether each stream of the cut has a member that holds it."""
    return all(stream in side.holders for side in proposal.sides for stream in side.cut)
