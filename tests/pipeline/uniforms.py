"""Histories of `uniform` and `uniform-fifo`: what any member delivered, each member delivers that goes on."""

from __future__ import annotations

from tests.pipeline import chains
from tests.pipeline.histories import History
from tests.pipeline.planted import closed, opened, others


def alone_and_dead(group: str, profile: str, at: str) -> History:
    """`at` alone delivers its last run, and dies."""
    history = opened(group, profile)
    history.deliver(history.send(at), at)
    history.crash(at)
    return closed(history)


def alone_and_excluded(group: str, at: str) -> History:
    """`at` alone delivers its last run, is cut off, and learns that the others went on without it."""
    history = opened(group, "uniform")
    history.mark("fault", reason="isolation", members=[history[at].address])
    history.deliver(history.send(at), at)
    history.exclude(at)
    return closed(history)


def behind_and_dead(group: str, profile: str, at: str) -> History:
    """`at` dies behind the others, and B in the middle; each had delivered what the others had before."""
    history = opened(group, profile, "ABCDE")
    runs = [history.send(name, 2) for name in "DEDE"]
    for run in runs:
        history.deliver(run, others(history, at).replace("B", ""))
    for run in runs[:2]:
        history.deliver(run, "B")
    history.crash(at + "B")
    return closed(history)


def branched(group: str, *, again: bool) -> History:
    """A and B go on without C, and end.  An operator vouches for them, and C delivers what it holds and begins another
    history.  With `again` it holds a run of A, which A and B delivered in their view; otherwise its own."""
    history = chains.begun(group)
    history.mark("fault", reason="split", members=[])
    run = history.send("A" if again else "C")
    history.accept("AB", "AB")
    chains.fork(history, "AB", "AB")
    if again:
        history.deliver(run, "AB")
    history.crash("AB")
    chains.vouch(history, "AB", "C")
    history.deliver(run, "C")
    history.history = "h2"
    history.view("C")
    return closed(history)


def lost_before_an_operator(group: str, at: str) -> History:
    """`at` alone delivers its run, and dies.  Later all but C end, and an operator vouches for them."""
    history = chains.begun(group, "ABCD")
    history.deliver(history.send(at), at)
    history.crash(at)
    rest = "".join(life.name for life in history.alive)
    history.view(rest)
    gone = others(history, "C")
    history.crash(gone)
    chains.vouch(history, gone, "C")
    history.history = "h2"
    history.view("C")
    return closed(history)


def without_the_dead(group: str, at: str) -> History:
    """`at`, who alone delivered its last run, has no journal."""
    history = alone_and_dead(group, "uniform", at)
    history[at].missing = True
    return history


def behind_a_hole(group: str, at: str) -> History:
    """A record of `at` is lost.  Behind it `at` lacks the last run of the view."""
    history = opened(group, "uniform")
    history[at].log("stable", digest={})
    history[at].hole_at = len(history[at].records) - 1
    history.deliver(history.send("B"), others(history, at))
    return closed(history)


def copied(group: str, at: str) -> History:
    """The journal of `at` is copied before the last run of the view; all go on."""
    history = opened(group, "uniform")
    history[at].copied()
    history.multicast("BD")
    history.view("ABCD")
    history.multicast("ABCD")
    return history


# Histories that a running check hears in another way: places and blocks as a journal may have them.


def misplaced(group: str, at: str) -> History:
    """The last run of the view has another place at `at`."""
    history = opened(group, "uniform")
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.deliver(run, at, position=history[at].position + 5)
    return closed(history)


def unplaced(group: str, at: str) -> History:
    """The last run of the view has no place at `at`."""
    history = opened(group, "uniform")
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.deliver(run, at, position=None)
    return closed(history)


def blocked_at_quiet(group: str, at: str) -> History:
    """`at` waits for a majority when all is quiet, and lacks the last run."""
    history = opened(group, "uniform")
    history[at].log("block", reason="no majority")
    history.deliver(history.send("B"), others(history, at))
    history.settle()
    return history


def an_earlier_view_again(group: str, at: str) -> History:
    """All have the last run of the first view, and `at` writes it behind a run of the second."""
    history = opened(group, "uniform")
    view, run = history[at].view, history.send("B")
    history.deliver(run, others(history, at))
    place = {"stream": history["A"].address, "seq": history[at].seq, "position": history[at].position}
    history.view("ABCD")
    history.multicast("D")
    origin = {"origin": "B", "origin_incarnation": run.origin.incarnation}
    label = {"first": run.first, "count": 1, "bytes": 100, "checksum": run.checksum}
    history[at].log("deliver", view, **origin, **label, **place)
    return closed(history)


def left_behind(group: str, at: str) -> History:
    """No journal has a mark.  `at` leaves with empty tables, and lacks the last run of its view; the others go on."""
    history = opened(group, "uniform")
    history[at].log("stats", gauges={"window": 0, "queue": 0})
    history.deliver(history.send("B"), others(history, at))
    history.leave(at)
    history.view("".join(life.name for life in history.alive))
    history.multicast("BD")
    return history
