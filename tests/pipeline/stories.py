"""Whole histories, right and wrong, that are more than one fault planted into an ordinary one."""

from __future__ import annotations

from tests.pipeline.histories import History
from tests.pipeline.planted import closed, opened, others, swapped


def ahead_and_resent(group: str, profile: str, at: str) -> History:
    """`at` alone delivers B's run and dies; the others deliver it one view later. For `total` that is right, and for
    `uniform` it is not."""
    history = opened(group, profile)
    run = history.send("B")
    history.deliver(run, at)
    history.crash(at)
    history.view("".join(life.name for life in history.alive))
    history.deliver(run, "".join(life.name for life in history.alive))
    return closed(history)


def unseen_by_reference(group: str) -> History:
    """A and B are gone when C and D deliver two messages in opposite orders."""
    history = opened(group)
    history.crash("AB")
    one, two = history.send("C"), history.send("D")
    for run, name in ((one, "C"), (two, "C"), (two, "D"), (one, "D")):
        history.deliver(run, name)
    return closed(history)


def cycle(group: str) -> History:
    """A: a b, B: b c, C: c a. No pair is in opposite order at two members, and yet there is no order."""
    history = opened(group)
    a, b, c = history.send("A"), history.send("B"), history.send("C")
    for run, name in ((a, "A"), (b, "A"), (b, "B"), (c, "B"), (c, "C"), (a, "C")):
        history.deliver(run, name)
    history.crash("ABC")
    return closed(history)


def cut_block(group: str, dead: str, swap: bool) -> History:
    """`dead` dies in the middle of a block, far behind the others; just before, two runs may be swapped at it."""
    history = opened(group)
    history.multicast("BD" * 14, count=2500)  # the second block begins
    one, two = history.send("B"), history.send("D")
    order = (two, one) if swap else (one, two)
    for run in (one, two):
        history.deliver(run, others(history, dead))
    for run in order:
        history.deliver(run, dead)
    history.crash(dead)
    history.multicast("BD", count=2000)
    return closed(history)


def own_lost(group: str, at: str) -> History:
    """The last message of one is delivered by nobody."""
    history = opened(group)
    history.send(at)
    history.settle()
    return history


def differ_at_quiet(group: str, at: str, profile: str = "total") -> History:
    """The last message of B comes to all but one."""
    history = opened(group, profile)
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.settle()
    return history


def differ_as_much(group: str, at: str) -> History:
    """At quiet one has delivered as much as the others, but not the same."""
    history = opened(group)
    history.deliver(history.send("B"), others(history, at))
    history.deliver(history.send(at), at)
    history.settle()
    return history


def late_after_a_death(group: str, at: str, dies: str) -> History:
    """`dies` was the first to deliver the last run of the view; `at` delivers it one view later."""
    history = opened(group)
    run = history.send("D")
    history.deliver(run, dies + "".join(life.name for life in history.alive if life.name not in (at, dies)))
    history.crash(dies)
    history.view("".join(life.name for life in history.alive))
    history.deliver(run, at)
    return closed(history)


def outside_at_quiet(group: str) -> History:
    """E waits to join, and all is quiet."""
    history = opened(group)
    newcomer = history.start("E")
    history.settle()
    newcomer.log("heal")
    newcomer.log("quiet")
    newcomer.log("stats", gauges={"window": 0})
    return history


def newborn_after_a_fault(group: str, at: str) -> History:
    """E begins after the fault that makes `at` look dead, so no mark is in its journal; it goes on without `at`."""
    history = opened(group)
    history.mark("fault", reason="isolation", members=[history[at].address])
    history.start("E")
    history.view("ABCDE")
    history.exclude(at)
    history.view("".join(life.name for life in history.alive))
    return closed(history)


def newborns_alone(group: str) -> History:
    """Whoever saw the fault leaves; of those that began later one goes on without another."""
    history = opened(group)
    history.mark("fault", reason="cut both", members=[])
    for name in "EFG":
        history.start(name)
    history.view("ABCDEFG")
    for name in "ABCD":
        history.leave(name)
    history.view("EFG")
    history.exclude("F")
    history.view("EG")
    return closed(history)


def bad_weather(group: str, at: str) -> History:
    """Frames are lost from the beginning: each life is told so when it begins; `at` looks dead for a while."""
    history = History(group)
    for life in history.lives:
        life.log("fault", reason="weather", members=[])
    history.view("ABCD")
    history.multicast("ABCD")
    history.exclude(at)
    history.view("".join(life.name for life in history.alive))
    return closed(history)


def excluded_for_nothing(group: str, at: str, missing: str = "") -> History:
    """`at` is out, though nothing made it look dead; a fault comes later. The journal of `missing` is lost."""
    history = opened(group)
    history.exclude(at)
    history.view("".join(life.name for life in history.alive))
    history.mark("fault", reason="pause", members=[history["B"].address])
    history.view("".join(life.name for life in history.alive))
    for name in missing:
        history[name].missing = True
    return closed(history)


def a_fault_elsewhere(group: str, marked: bool) -> History:
    """X and Y used the folder before, and had a fault; A, B and D shut C out for nothing. Where nothing is `marked`
    among them something may have happened to C."""
    history = History(group)
    for name in "XY":
        history.start(name)
    history.view("XY")
    history.mark("fault", reason="pause", members=[history["X"].address])
    history.view("XY")
    for name in "XY":
        history.leave(name)
    history.number = 0
    history.view("ABCD")
    history.exclude("C")
    history.view("ABD")
    return closed(history) if marked else history


def two_ids_at_quiet(group: str, at: str) -> History:
    """At quiet all have one list of members, and `at` has it under an id of its own."""
    history = opened(group)
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        creator = history["C" if life.name == at == "A" else at if life.name == at else "A"]
        together = [one.address for one in history.alive if (one is life) or (life.name != at and one.name != at)]
        view = (history.number, creator.address)
        history.install(life, view, history.alive, before, transitional=together)
    history.settle()
    return history


def delivers_before_its_view(group: str, dies: bool) -> History:
    """E delivers what the group does before it is in it; then it comes, or dies."""
    history = History(group)
    history.view("ABCD")
    history.start("E")
    history.deliver(history.send("B"), "ABCDE")
    if dies:
        history.crash("E")
    else:
        history.view("ABCDE")
    return closed(history)


def sends_and_dies(group: str) -> History:
    """E sends before its first view, which never comes."""
    history = opened(group)
    history.start("E")
    history.send("E")
    history.crash("E")
    return closed(history)


def sends_before_its_view(group: str) -> History:
    history = opened(group)
    history.start("E")
    run = history.send("E")
    history.view("ABCDE")
    history.deliver(run, "ABCDE")
    return closed(history)


def full_at_quiet(group: str, at: str) -> History:
    history = closed(opened(group))
    history[at].log("stats", gauges={"window": 0, "queue": 3})
    return history


def left_without_report(group: str, listed: bool) -> History:
    """B leaves with a run that nobody delivered; it is listed to it or not."""
    history = opened(group)
    run = history.send("B", 2)
    if listed:
        history["B"].log(
            "undelivered", origin="B", origin_incarnation=run.origin.incarnation, first=run.first, count=2, bytes=200
        )
    history.leave("B")
    return closed(history)


def left_with_half(group: str, at: str) -> History:
    """`at` leaves with two runs that nobody delivered, and is told of the first one only."""
    history = opened(group)
    run = history.send(at)
    history.send(at)
    told = {"origin": at, "origin_incarnation": run.origin.incarnation, "first": run.first, "count": 1, "bytes": 100}
    history[at].log("undelivered", **told)
    history.leave(at)
    return closed(history)


def left_with_a_hole(group: str, at: str) -> History:
    """`at` leaves; of its last two runs the second one alone was delivered."""
    history = opened(group)
    history.send(at)
    history.multicast(at)
    history.leave(at)
    return closed(history)


def slow_to_heal(group: str, bound_us: int, missing: str = "") -> History:
    """The view comes 1,000 us after `heal`. The member `missing` has no journal."""
    names = "ABC" + missing
    history = History(group, "total", names, bound_us)
    history.view(names)
    history.mark("heal")
    history.view(names)
    history.multicast("ABC")
    history.mark("quiet")
    if missing:
        history[missing].missing = True
    return history


def joined(group: str, first_delivered: str) -> History:
    """E joins with a digest; what it delivers next is right, or covered by the digest, or behind a hole."""
    history = opened(group)
    old = history.send("B")
    history.deliver(old, "ABCD")
    history.start("E")
    history.view("ABCDE")
    if first_delivered == "covered":
        history.deliver(old, "E")
    new = history.send("B")
    history.deliver(new, "ABCD" if first_delivered == "hole" else "ABCDE")
    history.multicast("BE")
    history.settle()
    return history


def given_state(group: str, wrong: str) -> History:
    """E joins and A gives it the state; `wrong` says what does not fit."""
    history = opened(group)
    newcomer = history.start("E")
    history.view("ABCDE")
    digest = dict(newcomer.marks)
    given = digest | {history["B"].address: 5} if wrong == "claim" else digest
    taken = digest | {history["B"].address: 3} if wrong == "digest" else given
    checksum = 78 if wrong == "bytes" else 77
    history["A"].log("state_get", bytes=10, checksum=77, position=0, peer=newcomer.address, digest=given)
    newcomer.log("state_set", bytes=10, checksum=checksum, position=0, peer=history["A"].address, digest=taken)
    history.multicast("ABE")
    history.settle()
    if wrong == "missing":
        history["A"].missing = True
    return history


def claims_less(group: str, giver: str) -> History:
    """The state that is given is said to lack what its giver had delivered; its taker dies."""
    history = opened(group)
    newcomer = history.start("E")
    history.view("ABCDE")
    digest = {origin: mark for origin, mark in newcomer.marks.items() if origin != history["B"].address}
    history[giver].log("state_get", bytes=10, checksum=77, position=0, peer=newcomer.address, digest=digest)
    history.crash("E")
    return closed(history)


def gap_over_the_dead(group: str, profile: str) -> History:
    """What the dead B sent last is announced to all as missing, though nothing was merged."""
    history = opened(group, profile)
    run = history.send("B", 2)
    history.crash("B")
    history.gap("ACD", run)
    return closed(history)


def knocked(group: str, at: str) -> History:
    """A member of another profile asks to join and is refused; `at` delivers two runs in the wrong order."""
    history = opened(group)
    history.start("E").profile = "fifo"
    swapped(history, at)
    return closed(history)


def gap_over_own(group: str, at: str) -> History:
    history = closed(opened(group))
    life = history[at]
    life.log("gap", origin=life.name, origin_incarnation=life.incarnation, first=1, count=1)
    return history


def behind_a_hole(group: str, at: str) -> History:
    """A record of `at` is lost; what stands behind it, wrong as it is, accuses nobody."""
    history = opened(group)
    history[at].log("stable", digest={})
    history[at].hole_at = len(history[at].records) - 1
    run = history.send("B", 2)
    history.deliver(run, others(history, at))
    history.multicast("BD")
    return closed(history)


def without_journal(group: str, of: str) -> History:
    history = closed(opened(group))
    history[of].missing = True
    return history


def no_view_named(group: str, at: str) -> History:
    """`at` says that it came from no view, and the others agree that it did not come with them."""
    history = opened(group)
    history.number += 1
    before = {life.address: None if life.name == at else life.view for life in history.alive}
    for life in history.alive:
        history.install(life, (history.number, history["A"].address), history.alive, before)
    return closed(history)


def skipped_and_misnamed(group: str, at: str) -> History:
    """`at` lacks the last run of one that dies; all that go on together say that they came from an earlier view."""
    history = opened(group)
    first = history["A"].view
    history.view("ABCD")
    history.deliver(history.send("B"), others(history, at))
    history.crash("B")
    history.number += 1
    before = {life.address: first for life in history.alive}
    for life in history.alive:
        history.install(life, (history.number, history["A"].address), history.alive, before)
    return closed(history)
