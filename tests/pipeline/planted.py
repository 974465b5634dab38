"""Histories with planted faults, and for each every promise that it breaks: nothing else may fire.

Faults come in variants: at the reference member A or at C, and for a member that lives on or dies before the view ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.pipeline.histories import History, Run

Plant = Callable[[History], None]


@dataclass(frozen=True)
class Planted:
    """One history: its group's name, how it is made, and what it breaks."""

    group: str
    make: Callable[[str], History]
    breaks: frozenset[str]


def opened(group: str, profile: str = "total", names: str = "ABCD") -> History:
    """A group of four in its first view, in which everybody has sent twice."""
    history = History(group, profile, names)
    history.view(names)
    history.multicast(names)
    history.multicast(names, count=3)
    return history


def closed(history: History) -> History:
    """The living go to a new view together, send, and settle."""
    names = "".join(life.name for life in history.alive)
    history.view(names)
    history.multicast(names)
    history.settle()
    return history


def clean(group: str, profile: str = "total") -> History:
    """Nothing wrong: a join, a crash whose victim was ahead, a leave, a restart with a state, large blocks."""
    history = opened(group, profile, "ABC")
    history.start("D")
    history.view("ABCD")
    history.multicast("ABCD", count=900)
    history.multicast("ABCD", count=1200)
    history["A"].log("purge", digest={history["A"].address: history["A"].seq})
    last = history.send("C")
    if profile.startswith("uniform"):
        history.deliver(last, "ABCD")
    else:
        history.deliver(last, "C")  # ahead of everybody, and then it dies
    history.crash("C")
    history.view("ABD")
    history.multicast("ABD", count=2)
    history.leave("B")
    history.view("AD")
    history.multicast("DA")
    history.start("C")
    history.view("ADC")
    history.multicast("CAD", count=5)
    history.settle()
    return history


def others(history: History, name: str) -> str:
    return "".join(life.name for life in history.alive if life.name != name)


# Each plant is told at whom it shall go wrong.


def skipped(history: History, at: str) -> None:
    origin = "B"
    run = history.send(origin, 2)
    history.deliver(run, others(history, at))
    history.multicast("BD")


def swapped(history: History, at: str) -> None:
    first, second = history.send("B"), history.send("D")
    history.deliver(first, others(history, at))
    history.deliver(second, others(history, at))
    history.deliver(second, at)
    history.deliver(first, at)


def rotated(history: History, at: str) -> None:
    """Three runs, of which one delivers the last one first: its neighbors there are in order."""
    runs = [history.send(name) for name in ("B", "D", "C" if at == "A" else "A")]
    for run in runs:
        history.deliver(run, others(history, at))
    for run in (runs[2], runs[0], runs[1]):
        history.deliver(run, at)


def exchanged(history: History, at: str) -> None:
    """At the end of the view one delivered as much as the others, but not the same."""
    history.deliver(history.send("B"), others(history, at))
    history.deliver(history.send("D"), at)


def swapped_with_positions(history: History, at: str) -> None:
    """Two runs change places, each with the position that it has at the others."""
    first, second = history.send("B"), history.send("D")
    history.deliver(first, others(history, at))
    history.deliver(second, others(history, at))
    position = history[at].position
    history.deliver(second, at, position=position + 1)
    history.deliver(first, at, position=position)


def with_a_hole_in_positions(history: History, at: str) -> None:
    """One counts seven messages more than it delivers."""
    history.multicast("B")
    history[at].position += 7
    history.multicast("DB")


def late(history: History, at: str) -> None:
    """One sender's runs in the wrong order."""
    first, second = history.send("B"), history.send("B")
    history.deliver(first, others(history, at))
    history.deliver(second, others(history, at))
    history.deliver(second, at)
    history.deliver(first, at)


def repeated(history: History, at: str) -> None:
    run = history.send("B", 2)
    history.deliver(run, "".join(life.name for life in history.alive))
    history.deliver(run, at)


def forged(history: History, at: str) -> None:
    """Delivered by one, never sent by its origin, whose numbers are not that high."""
    history.deliver(Run(history["B"], 1000, 1, 7), at)


def unsent(history: History, at: str) -> None:
    """Delivered by everybody, but the origin's journal shows no send."""
    origin = history[at]
    run = Run(origin, origin.next_number, 1, 7)
    origin.next_number += 1
    history.deliver(run, "".join(life.name for life in history.alive))


def altered(history: History, at: str) -> None:
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.deliver(run, at, checksum=run.checksum + 1)


def sent_twice(history: History, at: str) -> None:
    """One has two records of the sending of one run."""
    run = history.send(at)
    history[at].next_number -= 1
    history.send(at)
    history.deliver(run, "".join(life.name for life in history.alive))


def altered_twice(history: History, at: str) -> None:
    """Two have another body than the origin sent, the same one."""
    for _ in range(12):
        run = history.send("B")
        history.deliver(run, "".join(name for name in others(history, at) if name != "D"))
        history.deliver(run, at + "D", checksum=run.checksum + 1)


def unplaced(history: History, at: str) -> None:
    """One does not say at which place of the view's order it delivered a run, and has it before another."""
    first, second = history.send("B"), history.send("D")
    history.deliver(first, others(history, at))
    history.deliver(second, others(history, at))
    history.deliver(second, at, position=None)
    history.deliver(first, at)


def skipped_with_a_gap(history: History, at: str) -> None:
    """A run is announced to one as missing, in a view that is no merge."""
    run = history.send("B", 2)
    history.deliver(run, others(history, at))
    history.gap(at, run)
    history.multicast("BD")


def resized(history: History, at: str) -> None:
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.deliver(run, at, bytes=99)


def lacking_at_the_end(history: History, at: str) -> None:
    """The last run of the view never comes to one that goes on."""
    run = history.send("B")
    history.deliver(run, others(history, at))


def one_view_late(history: History, at: str) -> None:
    """All go on together, but one delivers the last run of the old view in the new one."""
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.view("".join(life.name for life in history.alive))
    history.deliver(run, at)


def other_list(history: History, at: str) -> None:
    """One has the members in another order."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        members = history.alive[::-1] if life.name == at else history.alive
        history.install(life, (history.number, history["A"].address), members, before)


def lower_view(history: History, at: str) -> None:
    """One goes through a view of its own whose number is below that of the one before."""
    life = history[at]
    history.install(life, (0, life.address), [life], {life.address: life.view})


def without_itself(history: History, at: str) -> None:
    """A view without a member that installs it all the same."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    members = [life for life in history.alive if life.name != at]
    for life in history.alive:
        history.install(life, (history.number, history["A"].address), members, before)


def companion_forgotten(history: History, at: str) -> None:
    """One does not name a member that came with it from the same view."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        named = [other.address for other in history.alive if life.name != at or other.name != "D"]
        view = (history.number, history["A"].address)
        history.install(life, view, history.alive, before, transitional=named)


def unnamed(history: History, at: str) -> None:
    """One does not name itself as coming along; all others name it."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        named = [other.address for other in history.alive if life.name != at or other.name != at]
        history.install(life, (history.number, history["A"].address), history.alive, before, transitional=named)


def stranger_named(history: History, at: str) -> None:
    """One names a process that is not in the view as coming with it."""
    history.number += 1
    before = {life.address: life.view for life in history.alive}
    for life in history.alive:
        named = [other.address for other in history.alive] + ["X@580"] * (life.name == at)
        view = (history.number, history["A"].address)
        history.install(life, view, history.alive, before, transitional=named)


def purged_hole(history: History, at: str) -> None:
    """Votes let a run go that one never delivered, though it delivered the next of the stream."""
    lost, last = history.send("B"), history.send("D")
    history.deliver(lost, others(history, at))
    history.deliver(last, others(history, at))
    history.deliver(last, at, seq=history[at].seq + 1)
    voter = history["D"]
    voter.log("purge", digest={history["A"].address: voter.seq})


def purged_too_early(history: History, at: str) -> None:
    """Votes let a run go that one never delivers; the run is the last of its view."""
    run = history.send("B")
    history.deliver(run, others(history, at))
    voter = history["D"]
    voter.log("purge", digest={history["A"].address: voter.seq})


VARIANTS = [("A", False), ("C", False), ("A", True), ("C", True)]


def variants(
    name: str, plant: Callable[[History, str], None], living: str, dead: str, profile: str = "total"
) -> Iterator[Planted]:
    """The plant at A and at C, each going on or dying in the view; `living` and `dead` list what is broken."""
    for at, dies in VARIANTS:

        def make(group: str, at: str = at, dies: bool = dies) -> History:
            history = opened(group, profile)
            plant(history, at)
            if dies:
                history.crash(at)
            return closed(history)

        breaks = dead if dies else living
        yield Planted(f"{name}-{at}-{'dead' if dies else 'living'}", make, frozenset(breaks.split()))
