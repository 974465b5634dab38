"""Histories of `uniform`, in which a majority of each view decides the next one: right ones, and broken chains."""

from __future__ import annotations

from tests.pipeline.histories import History
from tests.pipeline.planted import closed


def begun(group: str, names: str = "ABC") -> History:
    """A group in its first view, in which everybody has sent."""
    history = History(group, "uniform", names)
    history.view(names)
    history.multicast(names)
    return history


def after(group: str, names: str, dead: str, then: str, voters: str) -> History:
    """Those `dead` end, and `then` go on in a view that the `voters` have accepted."""
    history = begun(group, names)
    history.crash(dead)
    history.view(then, accepted=voters)
    return closed(history)


def left_together(group: str) -> History:
    """C and D leave at once, and accept the view without them.  B installs it before it has accepted it."""
    history = begun(group, "ABCD")
    for name in "CD":
        history[name].log("leave", reason="asked")
    history.accept("ACD", "AB")
    for name in "CD":
        history[name].log("stop", reason="left", gauges={})
    history.view("AB", accepted="")
    return closed(history)


def answered_in_its_place(group: str) -> History:
    """B and C end.  A new process of B accepts the next view in the journal of the former one, and joins."""
    history = begun(group)
    history.crash("BC")
    history.accept("AB", "AB")
    history.start("B")
    history.view("AB", accepted="")
    return closed(history)


def vouch(history: History, names: str, at: str) -> None:
    """An operator vouches that these have ended for good, and those `at` hear it."""
    for name in at:
        for gone in names:
            history[name].log("suspect", peer=history[gone].address, reason="vouched")


def vouched(group: str, gone: str, names: str = "ABC", id: str = "h2", ahead: bool = False) -> History:
    """All but the last one end, and an operator vouches for those `gone`.  The last one goes on, in the history `id`.

    With `ahead` the others had installed a view of their own before they ended."""
    history = begun(group, names)
    last, dead = names[-1], names[:-1]
    if ahead:
        history.mark("fault", reason="split", members=[])
        history.accept(dead, dead)
        fork(history, dead, dead)
    history.crash(dead)
    vouch(history, gone, last)
    history.history = id
    history.view(last)
    return closed(history)


def fork(history: History, at: str, names: str) -> None:
    """Those `at` alone install the next view, of the members `names`, while the others stay in theirs."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for name in at:
        view = (history.number, history[names[0]].address)
        history.install(history[name], view, [history[one] for one in names], before)


def forked(group: str, at: str, other: str) -> History:
    """`at` installs a view with B that both have accepted, and ends.  B and the other one go on in another view."""
    history = begun(group)
    history.mark("fault", reason="split", members=[])
    history.accept(at + "B", at + "B")
    fork(history, at, at + "B")
    history.crash(at)
    history.view("B" + other)
    return closed(history)


def joined_from_a_view(group: str) -> History:
    """D had a view of its own, of another history, and comes from there to a view of ABCD."""
    history = History(group, "uniform", "ABCD")
    history.history = "h2"
    history.view("D")
    history.history = "h1"
    history.view("ABC")
    history.view("ABCD", accepted="ABC")
    return closed(history)


def begun_twice(group: str, first: str = "h1", second: str = "h1") -> History:
    """A and C found groups under these history ids.  C ends."""
    history = History(group, "uniform", "ABC")
    history.history = first
    history.view("A")
    history.history = second
    history.view("C")
    history.crash("C")
    history.history = first
    history.view("AB")
    return closed(history)


def another_history(group: str, at: str) -> History:
    """`at` alone has a view in another history."""
    history = begun(group)
    history.accept("ABC", "ABC")
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        history.history = "h2" if life.name == at else "h1"
        history.install(life, (history.number, history["A"].address), history.alive, before)
    history.settle()
    return history


def without_history(group: str) -> History:
    """No view has a history id."""
    history = History(group, "uniform", "AB")
    history.history = None
    history.view("AB")
    return closed(history)


def not_primary(group: str, at: str) -> History:
    """`at` says that its view is not primary."""
    history = begun(group)
    history.accept("ABC", "ABC")
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        view = (history.number, history["A"].address)
        history.install(life, view, history.alive, before, primary=life.name != at)
    history.settle()
    return history


def two_ballots(group: str) -> History:
    """A and B accept a view, and not under one ballot."""
    history = begun(group)
    history.crash("C")
    history.accept("A", "AB", ballot=7)
    history.accept("B", "AB", ballot=8)
    history.view("AB", accepted="")
    return closed(history)


def joiners_voted(group: str) -> History:
    """D and E accept the view that admits them, and of the members A alone did."""
    history = begun(group)
    history.crash("BC")
    for name in "DE":
        history.start(name).view = history["A"].view
    history.accept("ADE", "ADE")
    for name in "DE":
        history[name].view = None
    history.view("ADE", accepted="")
    return closed(history)


def begun_again(group: str) -> History:
    """C ends, and the others begin another history although they are a majority."""
    history = begun(group)
    history.crash("C")
    history.history = "h2"
    history.view("AB")
    return closed(history)


def without_journal(group: str, missing: str) -> History:
    """A and B are a majority; one of them has no journal."""
    history = after(group, "ABC", "C", "AB", "AB")
    history[missing].missing = True
    return history


def without_the_founder(group: str) -> History:
    """A, who has no journal, founds the group; B joins and ends, and C joins.  No journal shows that A was there."""
    history = History(group, "uniform", "ABC")
    history.view("A")
    history.view("AB")
    history.multicast("A")
    history.crash("B")
    history.view("AC")
    history.settle()
    history["A"].missing = True
    return history
