"""The decisions of MERGE2 as pure functions: the leader of a merge, and the views and members that take part.

Note: docs/layers/merge2.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Literal, NamedTuple

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.view import AgreedView, ViewId

Party = tuple[AgreedView, tuple[Address, ...]]  # a view, and some of its members, in its order


class MergeAnswer(NamedTuple):
    """The answer of one process that takes part."""

    view: AgreedView
    hears: Container[Address]  # processes that exchange frames with the sender both ways


def acting_coordinator(view: AgreedView, here: Container[Address]) -> Address | None:
    """The first member of `view`, in its order, among those that are known to have it installed."""
    return next((member for member in view.members if member in here), None)


def parties(views: Mapping[Address, AgreedView]) -> list[Party]:
    """The views that these processes have installed, each with those of these processes that are its members."""
    found: dict[ViewId, tuple[AgreedView, list[Address]]] = {}
    for member, view in views.items():
        if member in view.members:
            found.setdefault(view.id, (view, []))[1].append(member)
    return [(view, tuple(member for member in view.members if member in here)) for view, here in found.values()]


def leader(views: Mapping[Address, AgreedView]) -> Address | None:
    """The lowest address of the acting coordinators, of two views or more; None if there is nothing to merge."""
    found = parties(views)
    coordinators = [here[0] for _, here in found]
    return min(coordinators) if len(found) > 1 else None


def leaders_before(me: Address, views: Mapping[Address, AgreedView]) -> list[Address]:
    """The acting coordinators with lower addresses, which lead before `me`."""
    return [here[0] for _, here in parties(views) if here[0] < me]


def take_part(
    me: Address, answers: Mapping[Address, MergeAnswer | None], changing: Container[Address] = ()
) -> tuple[Party, ...]:
    """The views that a merge under the lead of `me` can unite, with the members of each that take part.

    `answers` has None for a process that refuses.  `answers` lacks each process that did not answer.  Views with a
    member in `changing` are about to change, and stay out.  The result begins with the view of `me`, and is empty if
    fewer than two views can be united.
    """
    willing = {member: answer for member, answer in answers.items() if answer is not None}
    found = parties({member: answer.view for member, answer in willing.items()})
    found = [(view, here) for view, here in found if not any(member in changing for member in view.members)]
    whole = [party for party in found if not _lacks_a_living_member(party, answers, willing)]
    mine = [party for party in whole if me in party[1]]
    others = sorted((party for party in whole if me not in party[1]), key=lambda party: (-len(party[1]), min(party[1])))
    chosen = mine
    for party in others if mine else []:
        if all(_can_unite(party, one, willing) for one in chosen) and _size([*chosen, party]) <= MEMBERS_MAX:
            chosen = [*chosen, party]
    return tuple(chosen) if len(chosen) > 1 else ()


def replaced(answers: Mapping[Address, MergeAnswer | None]) -> dict[Address, Address]:
    """The processes that have to end, each with the newer process of its name.

    Of the processes of one name that answered, the newest stays: the one that joined with the view of the highest
    number.  Views carry these numbers, so all members agree.  Of equals, from groups that were born apart, the one with
    the highest incarnation stays (0127).
    """
    newest: dict[str, tuple[int, Address]] = {}
    joined = {one: answer.view.joined(one) for one, answer in answers.items() if answer and one in answer.view.members}
    for member, number in joined.items():
        newest[member.name] = max(newest.get(member.name, (-1, member)), (number, member))
    return {member: newest[member.name][1] for member in joined if newest[member.name][1] != member}


def why_apart(
    me: Address, asked: Iterable[Address], answers: Mapping[Address, MergeAnswer | None]
) -> tuple[Literal["names", "links"], Address, Address] | None:
    """The reason for which a merge under the lead of `me` can unite no two views: two processes of one name, or two
    that do not hear each other.  None: a process refused, or a view is about to change, which passes."""
    willing = {member: answer for member, answer in answers.items() if answer is not None}
    for older, newer in replaced(answers).items():
        return "names", older, newer
    for member, answer in willing.items():
        for other in asked:
            apart = other not in answer.view.members and other != member
            heard = other in answer.hears or any(other in one.hears for one in willing.values())
            if apart and other not in answer.hears and (other in willing or (member == me and heard)):
                return "links", member, other
    return None


def _lacks_a_living_member(
    party: Party, answers: Mapping[Address, MergeAnswer | None], willing: Mapping[Address, MergeAnswer]
) -> bool:
    """Whether a member of the view did not answer, and another member hears it: the view works, and a merge would take
    the member out of it."""
    view, here = party
    silent = [member for member in view.members if member not in answers]
    return any(member in willing[other].hears for member in silent for other in here)


def _can_unite(one: Party, other: Party, willing: Mapping[Address, MergeAnswer]) -> bool:
    """Whether all members of both parties can speak with each other, and no two of them have the same name."""
    pairs = [(a, b) for a in one[1] for b in other[1]]
    return all(a.name != b.name and b in willing[a].hears and a in willing[b].hears for a, b in pairs)


def hears_more(answer: MergeAnswer | None, asked: Container[Address], peers: Iterable[Address]) -> bool:
    """Whether one of `peers` was asked for the same merge, and the sender of this answer did not hear it then."""
    return answer is not None and any(peer in asked and peer not in answer.hears for peer in peers)


def _size(of: Iterable[Party]) -> int:
    return sum(len(members) for _, members in of)
