"""Histories in which views merge: right ones, and faults in the merge itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tests.pipeline.histories import History, Life, View
from tests.pipeline.planted import closed, others

Gap = tuple[str, int, int, int]  # origin, first, last, and the number of the subgroup that has the messages
DEAD = "E@450"
NO_SUBGROUP = 9


@dataclass
class Told:
    """What one member writes down of a merge; a test may change it."""

    subgroups: list[list[str]]
    marks: dict[str, int]
    gaps: list[Gap]
    also: tuple[str, ...] = ()  # named by each gap, too


Change = Callable[[str, Told], None]  # of the member with this name


def nothing(name: str, told: Told) -> None:
    """A merge without a fault."""


def merge(
    history: History,
    *sides: str,
    change: Change = nothing,
    order: str = "",
    elsewhere: str = "",
    given: tuple[str, str] = ("", ""),
) -> View:
    """The members of `sides`, each from one view, install one view and announce what they lack.

    `order` is the order of the members, if not that of the addresses. The members `elsewhere` accept the view, and do
    not install it. `given` are a member and another one of whom it begins the view with a state.
    """
    groups = [[history[name] for name in side] for side in sides]
    members = [history[name] for name in order or sorted("".join(sides))]
    view = (history.number + 1, members[0].address)
    tops = [dict(side[0].marks) for side in groups]
    if given[0]:
        history[given[0]].marks = dict(history[given[1]].marks)
    told = {life: _told(life, groups, tops) for life in members}
    for life in members:
        change(life.name, told[life])
    for side in groups:
        for life in side:
            _step(life, "accepted", view, side, members, told[life])
    before = {life.address: life.view for life in members}
    history.number += 1
    history.alive = [life for life in members if life.name not in elsewhere]
    for life in history.alive:
        (side,) = (side for side in groups if life in side)
        _step(life, "installed", view, side, members, told[life])
        begins: dict[str, object] = {"digest": dict(life.marks)} if life.name == given[0] else {}
        history.install(life, view, members, before, subgroups=told[life].subgroups or None, **begins)
        for gap in told[life].gaps:
            announce(life, told[life], gap)
    return view


def _told(life: Life, groups: Sequence[Sequence[Life]], tops: Sequence[dict[str, int]]) -> Told:
    marks: dict[str, tuple[int, int]] = {}  # per origin, the highest mark and the first side that has it
    for number, top in enumerate(tops):
        for origin, mark in top.items():
            if mark > marks.get(origin, (0, 0))[0]:
                marks[origin] = mark, number
    own = life.marks
    gaps = [(origin, own.get(origin, 0) + 1, *mark) for origin, mark in marks.items() if own.get(origin, 0) < mark[0]]
    return Told([[one.address for one in side] for side in groups], {o: mark for o, (mark, _) in marks.items()}, gaps)


def _step(life: Life, stage: str, view: View, side: list[Life], members: list[Life], told: Told) -> None:
    life.log(
        "merge",
        stage=stage,
        members=[one.address for one in members],
        transitional=[one.address for one in side],
        subgroups=told.subgroups,
        next_number=view[0],
        next_creator=view[1],
        digest=told.marks,
    )


def announce(life: Life, told: Told, gap: Gap) -> None:
    """The member's records of a gap: one for each list of members that delivered its messages."""
    address, first, last, side = gap
    origin, _, incarnation = address.partition("@")
    label = {"origin": origin, "origin_incarnation": incarnation}
    for have, numbers in groupby(range(first, last + 1), lambda number: _holders(life, told, address, number, side)):
        low, *rest = numbers
        life.log("gap", **label, first=low, count=1 + len(rest), members=list(have))
    life.marks[address] = max(last, life.marks.get(address, 0))


def _holders(life: Life, told: Told, origin: str, number: int, side: int) -> tuple[str, ...]:
    """The members of a subgroup that delivered a message; the member itself, if there is no such subgroup."""
    if side >= len(told.subgroups):
        return (life.address,)
    lives = {record.life.address: record.life for record in life.story}
    there = told.subgroups[side]
    return tuple(one for one in there if number in lives[one].had.get(origin, ()) or one in told.also)


def merged(group: str, forgets: str = "", apart: bool = True, profile: str = "total", more: bool = True) -> History:
    """AB and CD are two views and become one; what the other side had is announced as gaps, but not at `forgets`.

    Without `more` nobody sends afterwards: of the other side everybody has heard by the gaps alone.
    """
    history = History(group, profile)
    if not apart:
        history.view("ABCD")
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("CD", primary=profile == "uniform")
    history.multicast("CD", count=3)
    merge(history, "AB", "CD", change=lambda name, told: told.gaps.clear() if name == forgets else None)
    if more:
        history.multicast("ABCD")
    history.settle()
    return history


def untold(group: str) -> History:
    """AB and CD become one view, and no record says that it merges anything."""

    def change(name: str, told: Told) -> None:
        told.subgroups, told.gaps = [], []

    history = History(group)
    history.view("AB")
    history.view("CD")
    merge(history, "AB", "CD", change=change)
    return history


def newcomers_merged(group: str, given: str = "", repeats: str = "") -> History:
    """E, which a given state made a member of AB, merges with CD. It may begin the merged view with a state of C.

    Before the merge the member `repeats` delivers a message a second time."""
    history = History(group)
    history.view("AB")
    history.multicast("AB", count=2)
    history.start("E")
    history.view("ABE")
    history.multicast("AE")
    if repeats:
        run = history.send("B")
        history.deliver(run, "ABE")
        history.deliver(run, repeats)
    history.view("CD", primary=False)
    history.multicast("CD", count=3)
    merge(history, "ABE", "CD", given=(given, "C"))
    history.multicast("ABCDE")
    history.settle()
    return history


def merged_and_given(group: str, giver: str) -> History:
    """After a merge a newcomer is given a state, which covers the gaps that its giver was told."""
    history = merged(group, more=False)
    newcomer = history.start("E")
    history.view(giver + others(history, giver) + "E")
    digest = dict(newcomer.marks)
    history[giver].log("state_get", bytes=10, checksum=77, position=0, peer=newcomer.address, digest=digest)
    newcomer.log("state_set", bytes=10, checksum=77, position=0, peer=history[giver].address, digest=digest)
    history.settle()
    return history


def survived(group: str, change: Change = nothing, order: str = "", unheard: int = 0) -> History:
    """AB is one view and CDE another, E crashes, and AB and CD merge. Nobody hears of E afterwards: a wrong gap over
    its messages breaks nothing else. E sent `unheard` messages at last that nobody delivered."""
    history = History(group, names="ABCDE")
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("CDE")
    history.multicast("CDE", count=3)
    history.multicast("E", count=2)
    if unheard:
        history.send("E", count=unheard)
    history.crash("E")
    history.view("CD", primary=False)
    history.multicast("C")
    merge(history, "AB", "CD", change=change, order=order)
    history.multicast("ABCD", count=2)
    history.settle()
    return history


def merged_without_journals(group: str) -> History:
    """Nobody's journal shows what A and B announce as delivered on the other side."""
    history = survived(group)
    for name in "CDE":
        history[name].missing = True
    return history


def named_too(at: str, name: str) -> Change:
    """`at` names `name` in its gaps, which delivered none of the messages of E."""

    def change(whose: str, told: Told) -> None:
        if whose == at:
            told.also = tuple(one for side in told.subgroups for one in side if one.partition("@")[0] == name)

    return change


def subgroups_of(*sides: str, at: str = "ABCD") -> Change:
    """Those `at` list other subgroups, and their gaps name the first of these."""

    def change(name: str, told: Told) -> None:
        if name in at:
            addresses = {one.partition("@")[0]: one for side in told.subgroups for one in side}
            told.subgroups = [[addresses[one] for one in side] for side in sides]
            told.gaps = [(*gap[:3], 0) for gap in told.gaps]

    return change


def gap_over_the_dead(at: str, *gaps: tuple[int, int], side: int = 1) -> Change:
    """`at` announces these gaps over the five messages of E, and no other ones."""

    def change(name: str, told: Told) -> None:
        if name == at:
            told.gaps = [gap for gap in told.gaps if gap[0] != DEAD]
            told.gaps += [(DEAD, first, last, side) for first, last in gaps]

    return change


def marks_of_the_dead(mark: int, at: str = "ABCD", gaps: bool = True) -> Change:
    """The merge has another mark of E at those `at`, 0 for none. With `gaps` what they announce fits the mark."""

    def change(name: str, told: Told) -> None:
        if name in at:
            told.marks[DEAD] = mark
            if not mark:
                del told.marks[DEAD]
            if gaps:
                first = 1 if name in "AB" else 6
                told.gaps = [gap for gap in told.gaps if gap[0] != DEAD]
                told.gaps += [(DEAD, first, mark, 1)] if first <= mark else []

    return change


def died_in_a_merge(group: str, change: Change = nothing) -> History:
    """D accepts a merged view, and crashes before it installs the view."""
    history = History(group)
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("CD", primary=False)
    history.multicast("CD", count=3)
    history.mark("fault", reason="loss", members=[])
    merge(history, "AB", "CD", change=change, elsewhere="D")
    history.multicast("ABC")
    history.crash("D")
    return closed(history)


def merged_twice(group: str, change: Change = nothing) -> History:
    """C delivered the messages of E, which crashed; D skips them when it merges with C. Both merge with AB."""
    history = History(group, names="ABCDE")
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("D", primary=False)
    history.multicast("D")
    history.view("CE", primary=False)
    history.multicast("E", count=2)
    history.crash("E")
    history.view("C", primary=False)
    merge(history, "C", "D")
    history.multicast("CD")
    merge(history, "AB", "CD", change=change)
    history.multicast("ABCD")
    history.settle()
    return history


def late_gap(group: str, at: str) -> History:
    """`at` delivers a message in the merged view, and then hears of the gap over the messages of E."""
    late: list[Told] = []

    def change(name: str, told: Told) -> None:
        if name == at:
            late.append(Told(told.subgroups, told.marks, [gap for gap in told.gaps if gap[0] == DEAD]))
            told.gaps = [gap for gap in told.gaps if gap[0] != DEAD]

    history = History(group, names="ABCDE")
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("CDE")
    history.multicast("CDE", count=3)
    history.crash("E")
    history.view("CD", primary=False)
    merge(history, "AB", "CD", change=change)
    history.multicast("C")
    announce(history[at], late[0], late[0].gaps[0])
    history.multicast("ABCD")
    history.settle()
    return history


def divided(group: str, at: str, healed: bool) -> History:
    """`at` and another come from one view and accept a merged view; the other installs it, and `at` goes on alone.

    A fault divides the sides; with `healed` it is over when they merge.
    """
    history = History(group)
    history.view("ABCD")
    everybody = list(history.alive)
    history.mark("fault", reason="halves", members=[])
    history.view("AB")
    history.multicast("AB", count=2)
    history.view("CD", primary=False)
    history.multicast("CD", count=3)
    history.alive = everybody
    if healed:
        history.mark("heal")
    merge(history, "AB", "CD", elsewhere=at)
    rest = others(history, at)
    history.multicast(rest)
    history.view(at)
    merge(history, *sorted([rest, at]))
    history.multicast("ABCD")
    history.settle()
    return history


def replaced_twice(group: str, giver: str, *, told: bool = True) -> History:
    """A and B part from C and D, and then from each other.  B loses a merge with C and D, and A a later one: the state
    of `giver` lacks two messages that A and B have delivered, as A records if it is `told`."""
    history = History(group)
    history.view("ABCD")
    history.multicast("ABCD")
    history.mark("fault", reason="cut", members=[])
    history.view("AB", primary=False)
    history.multicast("A", count=2)
    history.view("CD", primary=False)
    history.multicast("C")
    history.view("B", primary=False)
    history.view("A", primary=False)
    history.multicast("A")
    digest = dict(history["C"].marks)
    merge(history, "B", "CD", given=("B", "C"))
    takes(history["C"], history["B"], digest)
    side, lacks = "BCD", (history["A"], 2, 2)
    if giver == "E":
        side = "BCDE"
        newcomer = history.start("E")
        history.view(side)
        takes(history["B"], newcomer, dict(newcomer.marks), lacks)
    history.multicast("B")
    digest = dict(history[giver].marks)
    merge(history, "A", side, given=("A", giver))
    takes(history[giver], history["A"], digest, *([lacks] if told else []))
    history.mark("heal")
    history.multicast("ABCD")
    history.settle()
    return history


def takes(giver: Life, taker: Life, digest: dict[str, int], *lacks: tuple[Life, int, int]) -> None:
    """A state is given and set.  `lacks`: messages of an origin, the first one and their number."""
    what = {"bytes": 10, "checksum": 77, "position": 0, "digest": digest}
    for life, other, kind, reason in ((giver, taker, "state_get", "given"), (taker, giver, "state_set", "set")):
        for origin, first, count in lacks:
            label = {"origin": origin.name, "origin_incarnation": origin.incarnation}
            life.log("lack", **label, first=first, count=count, peer=other.address, reason=reason)
        life.log(kind, peer=other.address, **what)
