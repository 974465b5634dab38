"""Quorum: the answers that a view change needs.  The quorum is a parameter, because two kinds of groups need different
ones.

`EVERYBODY`: all members that were asked answer Collect, and all members that go on accept.  Two sides of a split may
both go on.

`MAJORITY`: a view is decided when more than half of the view before have accepted it, or half of them with its first
member.  Members that leave count, joiners do not.  Members that an operator vouches for are left out of the count.  No
two views follow one view, and the majority needs no other member: a member that goes on and crashes before it accepts
delays no decision.  Because a view may be decided without an answer of each member, a later leader takes over the
proposal that was accepted under the highest ballot.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.view import AgreedView, Ballot

from ..heads import CollectAck, Difference
from . import decide
from .proposal import Proposal, proposal_of


class Quorum(NamedTuple):
    """The answers that an attempt needs, its proposal where an earlier one binds it, and what members keep for it."""

    one_chain: bool  # no two views follow one view, so each view is earlier or later than each other one
    remembers_accepted: bool  # each answer to a later Collect reports the proposal that its sender accepted last
    keeps_past_streams: bool  # the runs of the view before are kept until all members have the view
    joiners_max: Callable[[int], int]  # the most joiners of a view, where so many members go on
    may_go_on: Callable[[AgreedView, Container[Address], Container[Address]], bool]
    # whether an attempt may stop the view: the view, the members that are there, the vouched ones
    must_answer: Callable[[AgreedView, tuple[Address, ...], Container[Address], Container[Address]], bool]
    # whether enough members of the view answered Collect: the view, those that were asked, those that answered, the
    # vouched ones
    decides: Callable[[AgreedView, Proposal, Container[Address], Container[Address]], bool]
    # whether the proposal is decided: the view that it ends, the proposal, those that accepted, the vouched ones
    taken_over: Callable[[AgreedView, Ballot, Mapping[Address, CollectAck]], Proposal | None]
    # the accepted proposal that an attempt must repeat: the view, its ballot, the answers; None: it makes its own
    confirms: Callable[[AgreedView, Container[Address]], bool]
    # whether these members of the view show that no other view follows it yet: all are in it, and bound to no ballot


def _all_asked(
    view: AgreedView, asked: tuple[Address, ...], answered: Container[Address], vouched: Container[Address]
) -> bool:
    return all(member in answered or member in vouched for member in asked)


def _all_who_go_on(
    view: AgreedView, proposal: Proposal, accepted: Container[Address], vouched: Container[Address]
) -> bool:
    return all(member in accepted for member in proposal.going_on)


EVERYBODY: Final = Quorum(
    one_chain=False,
    remembers_accepted=False,
    keeps_past_streams=False,  # each member that goes on has fetched all of them before the decision
    joiners_max=lambda going_on: MEMBERS_MAX,
    may_go_on=lambda view, here, vouched: True,
    must_answer=_all_asked,
    decides=_all_who_go_on,
    taken_over=lambda view, ballot, answers: None,
    confirms=lambda view, here: all(member in here for member in view.members),
)


def _all_asked_and_most(
    view: AgreedView, asked: tuple[Address, ...], answered: Container[Address], vouched: Container[Address]
) -> bool:
    return _all_asked(view, asked, answered, vouched) and decide.is_majority(view, answered, vouched)


def _most_of_the_view(
    view: AgreedView, proposal: Proposal, accepted: Container[Address], vouched: Container[Address]
) -> bool:
    return decide.is_majority(view, accepted, vouched)


def _accepted_last(view: AgreedView, ballot: Ballot, answers: Mapping[Address, CollectAck]) -> Proposal | None:
    """The proposal that was accepted under the highest ballot, under the new `ballot`.  The members, joiners and cut of
    the proposal stay, even if some of the members have crashed: the proposal may have been decided.  A member that
    accepted the proposal holds the cut; a former incarnation holds no run, so a stream may be left without a holder."""
    reported = [answer.accepted for answer in answers.values() if answer.accepted is not None]
    if not reported:
        return None
    last = max(reported, key=lambda difference: difference.ballot)
    proposal = proposal_of(last, view)
    assert proposal is not None, "checked when the answer arrived"
    (side,) = proposal.sides
    answered = [member for member in (ballot.leader, *view.members) if member in answers]
    accepted = [member for member in answered if _ballot_of(answers[member].accepted) == last.ballot]
    held = {member: answers[member].held for member in (*accepted, *answered)}
    holders = {
        stream: decide.holder_of(rank, side.cut.get(stream, 0), held) for rank, stream in enumerate(view.members)
    }
    side = msgspec.structs.replace(side, holders={stream: one for stream, one in holders.items() if one is not None})
    return msgspec.structs.replace(proposal, ballot=ballot, sides=(side,))


def _ballot_of(accepted: Difference | None) -> Ballot | None:
    return None if accepted is None else accepted.ballot


MAJORITY: Final = Quorum(
    one_chain=True,
    remembers_accepted=True,
    keeps_past_streams=True,  # a member may learn of the decision first and fetch afterwards
    joiners_max=lambda going_on: going_on,  # each joiner counts in the next majority, and it may crash at once
    may_go_on=decide.is_majority,
    must_answer=_all_asked_and_most,
    decides=_most_of_the_view,
    taken_over=_accepted_last,
    confirms=decide.is_majority,
)
