"""Promise while faults last: progress.

The check judges each period in which neither the links between hosts nor the processes change.  An obstacle to the
group may last for a bound.  An obstacle that lasts longer without a change breaks the promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.limits import SECOND, Config
from pygroups.core.services import MERGING, PRIMARY
from pygroups.core.view import ViewId

from .chain import is_majority
from .facts import MEMBERS, Check, Link, Situation, Stand, Viewed
from .messages import Messages

Problem = tuple[str, Address, Address | None, int]  # obstacle, member, causing member, first message number


def bound_of(config: Config, round_trip: int = 0) -> int:
    """The longest time for an obstacle in a group without changes, in microseconds: the time to notice a silent
    member, and four attempts at a view.  Each attempt may wait in two stages; a message and its answer take
    `round_trip`."""
    noticed = detection(config, MEMBERS) + config.join_retry
    patience = config.ready_timeout + config.flush_timeout + 8 * round_trip
    return noticed + 4 * patience + SECOND // config.views_per_second


MERGES: Final = 20  # intervals in which all views that reach each other merge


def bound_with_merges(config: Config, round_trip: int = 0) -> int:
    """The longest time as `bound_of` gives it, for a stack that merges views: there the sides must first find each
    other."""
    return bound_of(config, round_trip) + MERGES * (config.merge_interval + round_trip)


class Progress(Check):
    """Members that reach each other are in one view without crashed members, are not blocked, and deliver their
    messages."""

    promises = ("progress",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.since = -1  # the start of the period of `problems`
        self.problems: dict[Problem, int] = {}  # the obstacles, with the time of the first observation of each
        self.judged = 0
        # Where a majority decides:
        self.before: dict[ViewId, ViewId] = {}  # the view that a view follows
        self.installed: dict[ViewId, int] = {}  # the time of the last installation of a view
        self.handed_over: dict[ViewId, None] = {}  # views of which each member knows that all members have the view

    def viewed(self, view: Viewed) -> None:
        if PRIMARY in self.around.services:
            self.installed[view.id] = view.at
            if view.came_from is not None:
                self.before[view.id] = view.came_from

    def facts(self) -> dict[str, int]:
        return {"progress": self.judged}

    def looked(self, situation: Situation) -> None:
        now, before = situation.now, self.problems if situation.since == self.since else {}
        self.since = situation.since
        self.problems = {problem: before.get(problem, now) for problem in self._problems(situation)}
        if now < situation.since + situation.bound:
            return
        self.judged += sum(stand.view is not None for stand in situation.stands)
        self._note_handed_over(situation)
        for problem, first in self.problems.items():
            what, member, other, number = problem
            if now >= first + self._patience(what, situation):
                message = ((other or member), number) if number else None
                self.broken("progress", what, member=member, other=other, message=message)

    def _patience(self, what: str, situation: Situation) -> int:
        """How long this obstacle may last."""
        if what == UNANSWERED:  # UNICAST2 gives up its connection then, and the window is free
            return situation.bound + self.around.config.connection_age
        return situation.bound * (2 if what == LEAVES else 1)

    # -- sides

    def _problems(self, situation: Situation) -> Iterator[Problem]:
        """The present obstacles in each part of the network whose members reach each other in both directions."""
        stands = {stand.member: stand for stand in situation.stands}
        for part in _parts([stand for stand in situation.stands if stand.runs], situation.cut):
            sides: dict[ViewId, list[Stand]] = {}
            for stand in part:
                if stand.view is not None:
                    sides.setdefault(stand.view, []).append(stand)
            for side in sides.values():
                ahead = [one for one in situation.stands if _went_on(one, side, situation.cut)]
                if ahead:
                    yield from self._left_behind(side, ahead, situation)
                elif PRIMARY in self.around.services and not _is_able(side, situation.cut):
                    yield from self._untold(side, situation)
                else:
                    yield from self._hindered(side, part, stands)
            yield from self._waiting(part, situation.cut)
            if MERGING in self.around.services and len(sides) > 1:
                yield from self._apart(sides, situation.cut)

    def _left_behind(self, side: list[Stand], ahead: list[Stand], situation: Situation) -> Iterator[Problem]:
        """Members that stay in an earlier view, although frames of members of a later view arrive.  A member that
        reaches all of these belongs to them; another one cannot answer, and makes a view without them."""
        later = [one for one in situation.stands if one.view == ahead[0].view and one.runs]
        for stand in side:
            if _reaches(stand, later, situation.cut) and not self._stays_for_the_others(stand, later):
                yield BEHIND, stand.member, ahead[0].member, 0
            elif MERGING in self.around.services and (went := _heard_of(stand, ahead, situation.cut)):
                yield STALE, stand.member, went, 0

    def _stays_for_the_others(self, stand: Stand, later: list[Stand]) -> bool:
        """Whether this member has to wait until enough members of the next view acknowledge its installation.

        Where a majority decides, a member that has no place in the next view stays, blocked, until then: this member
        may be the only one that knows the view.  While it reaches too few members of that view, it cannot get enough
        answers.  If the members that this member reaches know that all members have the view, they must report this to
        the member.
        """
        if PRIMARY not in self.around.services or not stand.told or not later:
            return False
        view, members = later[0].view, later[0].members
        if view is None or self.before.get(view) != stand.view or view in self.handed_over or stand.member in members:
            return False
        return not is_majority(members, [one.member for one in later])

    def _note_handed_over(self, situation: Situation) -> None:
        """After a bound in which all members of a view reach each other, each of them knows that all have the view."""
        for first in situation.stands if PRIMARY in self.around.services else ():
            view, side = first.view, [one for one in situation.stands if one.view == first.view and one.runs]
            if view is None or len(side) < len(first.members) or not _is_able(side, situation.cut):
                continue
            if situation.now >= self.installed.get(view, 0) + situation.bound:
                self.handed_over[view] = None

    def _apart(self, sides: dict[ViewId, list[Stand]], cut: frozenset[Link]) -> Iterator[Problem]:
        """Two views whose members all reach each other.  A view with a member that another one does not reach may stay
        by itself, because a merge takes no member out of a view that works."""
        found = list(sides.values())
        for index, side in enumerate(found):
            for other in found[index + 1 :]:
                if all(_reaches(stand, [*side, *other], cut) for stand in [*side, *other]):
                    yield APART, side[0].member, other[0].member, 0

    def _untold(self, side: list[Stand], situation: Situation) -> Iterator[Problem]:
        """Members that are cut off from too many members of their view, and have not learned this."""
        for stand in side:
            there = [one.member for one in situation.stands if one.runs and _hears(stand, one, situation.cut)]
            if not is_majority(stand.members, there) and not stand.told and not stand.leaving:
                yield UNTOLD, stand.member, None, 0

    def _waiting(self, part: list[Stand], cut: frozenset[Link]) -> Iterator[Problem]:
        """Joiners that reach all members of their part of the network."""
        inside = [stand for stand in part if stand.view is not None]
        if PRIMARY in self.around.services and not _is_able(inside, cut):
            return
        for stand in part:
            if stand.view is None and inside and not stand.leaving and _reaches(stand, inside, cut):
                yield WAITS, stand.member, None, 0

    # -- obstacles within one view

    def _hindered(self, side: list[Stand], part: list[Stand], stands: dict[Address, Stand]) -> Iterator[Problem]:
        """The obstacles within one view.  Where two members of the view cannot reach each other, one of them must
        leave the view, or their messages must go through other members without delay."""
        first = side[0]
        here = {stand.member: None for stand in part}
        installed = {stand.member: None for stand in side}
        for member in first.members:
            if member not in stands:
                yield DEAD, first.member, member, 0
            elif member not in here:
                yield UNREACHED, first.member, member, 0
            elif member not in installed:
                yield NOT_IN, first.member, member, 0
        reads = all(stands[member].reads for member in first.members if member in stands)
        for stand in side:
            if stand.blocked:
                yield BLOCKED, stand.member, None, 0
            if stand.stateless:
                yield STATELESS, stand.member, None, 0
            if stand.leaving:
                yield LEAVES, stand.member, None, 0
            elif stand.unsent and reads:
                to = stand.unsent_to
                answers = to is None or to in first.members or to in here
                yield UNSENT if answers else UNANSWERED, stand.member, to, stand.accepted
            for origin in side:
                number = self.messages.next.get(stand.member, {}).get(origin.member, 1)
                if number < origin.accepted:
                    yield UNDELIVERED, stand.member, origin.member, number


DEAD = "the view still has a process that has ended"
UNREACHED = "the view still has a member that cannot be reached"
NOT_IN = "the member is in a view that another member of this view has not installed"
BEHIND = "the member is in an earlier view than the others, although it reaches them all"
STALE = "the member stays in a view that another member has left, although frames of that member arrive"
WAITS = "the process waits to join, although it reaches all members"
UNTOLD = "the member reaches too few members of its view, and did not learn that it is blocked"
BLOCKED = "the member is blocked for a view change that does not end"
STATELESS = "the member waits for a state that does not arrive"
LEAVES = "the member asked to leave and is still in its view"
UNSENT = "the application waits to send, although all members read"
UNANSWERED = "the application waits to send to a process that has left its view, although the connection is too old"
UNDELIVERED = "the message of a member of the same view was not delivered"
APART = "the member is in another view than members that it reaches, and that all reach each other"


def _parts(stands: Sequence[Stand], cut: frozenset[Link]) -> list[list[Stand]]:
    """The groups of processes that are connected by links open in both directions, in the order of `stands`."""
    if not cut:
        return [list(stands)] if stands else []
    parts: list[list[Stand]] = []
    left = list(stands)
    while left:
        part = [left[0]]
        for stand in part:  # the loop extends this list
            part += [one for one in left if one not in part and linked(stand, one, cut)]
        parts.append([stand for stand in left if stand in part])
        left = [stand for stand in left if stand not in part]
    return parts


def linked(one: Stand, other: Stand, cut: frozenset[Link]) -> bool:
    """Whether frames pass between the two hosts in both directions."""
    a, b = one.member.name, other.member.name
    return (a, b) not in cut and (b, a) not in cut


def _is_able(side: list[Stand], cut: frozenset[Link]) -> bool:
    """Whether these members are in one view, are a majority of it, and all reach each other: they must go on."""
    one_view = len({stand.view for stand in side}) == 1
    here = [stand.member for stand in side]
    return one_view and is_majority(side[0].members, here) and all(_reaches(stand, side, cut) for stand in side)


def _hears(one: Stand, other: Stand, cut: frozenset[Link]) -> bool:
    """Whether frames pass between the two hosts in at least one direction."""
    a, b = one.member.name, other.member.name
    return one is other or (a, b) not in cut or (b, a) not in cut


def _reaches(one: Stand, others: Iterable[Stand], cut: frozenset[Link]) -> bool:
    return all(other is one or linked(one, other, cut) for other in others)


def _heard_of(stand: Stand, ahead: Iterable[Stand], cut: frozenset[Link]) -> Address | None:
    """The first of `ahead` that runs, and whose frames reach `stand`."""
    names = [(one.member, (one.member.name, stand.member.name)) for one in ahead if one.runs]
    return next((member for member, link in names if link not in cut), None)


def _went_on(one: Stand, side: list[Stand], cut: frozenset[Link]) -> bool:
    """Whether `one` was in the view of these members and is in a later one, and frames pass in at least one
    direction."""
    behind = side[0]
    if one.view is None or behind.view is None or one.view <= behind.view or one.member not in behind.members:
        return False
    here = one.member.name
    return any((here, other.member.name) not in cut or (other.member.name, here) not in cut for other in side)
