"""Histories that were found by comparing the audit with other judges: what one of them did not see, or saw wrongly."""

from __future__ import annotations

from dataclasses import replace

from tests.pipeline.histories import History, Run
from tests.pipeline.merges import merge
from tests.pipeline.planted import closed, opened, others

BLOCK = 65_536  # messages, by which the audit compares orders
RUN = 2048  # of them, no more than the window of a sender
OPENED = 16  # messages that `opened` delivers


def everybody(history: History) -> str:
    return "".join(life.name for life in history.alive)


# Plants for `variants`: told at whom it shall go wrong, who then goes on or dies.


def swapped_at_an_edge(history: History, at: str) -> None:
    """Two runs change places between the last place of a block and the first one of the next."""
    for _ in range(BLOCK // RUN // 2 - 1):
        history.multicast("BD", RUN)
    history.multicast("B", RUN)
    history.multicast("D", RUN - OPENED - 1)
    first, second = history.send("B"), history.send("D")
    history.deliver(first, others(history, at))
    history.deliver(second, others(history, at))
    history.deliver(second, at)
    history.deliver(first, at)


def skipped_at_an_edge(history: History, at: str) -> None:
    """The run at the last place of a block never comes to one, and what comes after stands in the next at others."""
    for _ in range(BLOCK // RUN // 2 - 1):
        history.multicast("BD", RUN)
    history.multicast("B", RUN)
    history.multicast("D", RUN - OPENED - 1)
    history.deliver(history.send("B"), others(history, at))
    history.multicast("DB")


def repeated_at_an_edge(history: History, at: str) -> None:
    """The run at the last place of a block comes to one again, at the first place of the next."""
    for _ in range(BLOCK // RUN // 2 - 1):
        history.multicast("BD", RUN)
    history.multicast("B", RUN)
    history.multicast("D", RUN - OPENED - 1)
    run = history.send("B")
    history.deliver(run, everybody(history))
    history.deliver(run, at)
    history.multicast("DB")


def postponed_past_an_edge(history: History, at: str) -> None:
    """The run at the last place of a block comes to one at the end of the next; the block after that is equal again."""
    for _ in range(BLOCK // RUN // 2 - 1):
        history.multicast("BD", RUN)
    history.multicast("B", RUN)
    history.multicast("D", RUN - OPENED - 1)
    late = history.send("B")
    history.deliver(late, others(history, at))
    for _ in range(BLOCK // RUN // 2):
        history.multicast("AC", RUN)
    history.deliver(late, at)
    history.multicast("BD")


def divergent(history: History, at: str) -> None:
    """One delivers a run of its own that nobody else ever has, and then what all deliver."""
    history.deliver(history.send(at), at)
    history.deliver(history.send("B"), everybody(history))


def repeated_later(history: History, at: str) -> None:
    """A run is delivered a second time one view later, by one."""
    run = history.send("B")
    history.deliver(run, everybody(history))
    history.view(everybody(history))
    history.deliver(run, at)


def altered_12_times(history: History, at: str) -> None:
    """One has another body than the origin sent, twelve times; nobody else has."""
    for _ in range(12):
        altered(history, at)


def altered(history: History, at: str) -> None:
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.deliver(run, at, checksum=run.checksum + 1)


def in_halves(history: History, at: str) -> None:
    """One delivers a run of four as two runs of two."""
    run = history.send("B", 4)
    history.deliver(run, others(history, at))
    history.deliver(replace(run, count=2), at)
    history.deliver(replace(run, first=run.first + 2, count=2), at)


def skipped_at_the_start(history: History, at: str) -> None:
    """The first run of a view never comes to one; more than a block follows."""
    history.view(everybody(history))
    run = history.send("B", 2)
    history.deliver(run, others(history, at))
    for _ in range(BLOCK // RUN // 2):
        history.multicast("BD", RUN)
    history.multicast("D")


def purged_by_a_later_vote(history: History, at: str) -> None:
    """The first votes let go only what all have; those of another member go further."""
    history["D"].log("purge", digest={history["A"].address: history["D"].seq})
    run = history.send("B")
    history.deliver(run, others(history, at))
    history["B"].log("purge", digest={history["A"].address: history["B"].seq})


# Whole histories.


def repeated_later_by_all(group: str) -> History:
    history = opened(group)
    run = history.send("B")
    history.deliver(run, "ABCD")
    history.view("ABCD")
    history.deliver(run, "ABCD")
    return closed(history)


def altered_everywhere(group: str) -> History:
    """All have the same body, and it is not the one that the origin sent."""
    history = opened(group)
    run = history.send("B")
    history.deliver(run, "ABCD", checksum=run.checksum + 1)
    return closed(history)


def late_everywhere(group: str) -> History:
    """One sender's runs come to all in one order, which is not the one they were sent in."""
    history = opened(group)
    first, second = history.send("B"), history.send("B")
    history.deliver(second, "ABCD")
    history.deliver(first, "ABCD")
    return closed(history)


def lost_with_its_sender(group: str, at: str) -> History:
    """The last run of one that dies comes to all but `at`."""
    history = opened(group)
    run = history.send("B")
    history.deliver(run, others(history, at))
    history.crash("B")
    return closed(history)


def two_lack(group: str, one: str, other: str) -> History:
    """At the end of a view two members lack different runs; each has as many as the other."""
    history = opened(group)
    history.deliver(history.send("B"), others(history, one))
    history.deliver(history.send("D"), others(history, other))
    return closed(history)


def same_number_twice(group: str, at: str) -> History:
    """`at` sends two runs under one number; everybody delivers the first one."""
    history = opened(group)
    run = history.send(at)
    history[at].next_number -= 1
    again = history.send(at)
    history[at].records[-1][2]["checksum"] = again.checksum + 1
    history.deliver(run, "ABCD")
    return closed(history)


def ragged_ends(group: str) -> History:
    """Three die in one view, each at another place of the same order; the fourth goes on with all of it."""
    history = opened(group, names="ABCDE")
    runs: list[Run] = [
        history.send(name, count) for name, count in zip("ABDEAB", (3000, 7, 2000, 1, 40, 900), strict=True)
    ]
    for name, many in (("A", 6), ("B", 4), ("C", 5), ("D", 6), ("E", 2)):
        for run in runs[:many]:
            history.deliver(run, name)
    history.crash("BCE")
    return closed(history)


def state_less_at_both(group: str, giver: str) -> History:
    """What was given and what was taken fit each other, and not what the giver had delivered."""
    history = opened(group)
    newcomer = history.start("E")
    history.view("ABCDE")
    digest = {origin: mark for origin, mark in newcomer.marks.items() if origin != history["B"].address}
    history[giver].log("state_get", bytes=10, checksum=77, position=0, peer=newcomer.address, digest=digest)
    newcomer.log("state_set", bytes=10, checksum=77, position=0, peer=history[giver].address, digest=digest)
    history.multicast("ABE")
    history.settle()
    return history


def state_of_later(group: str, giver: str) -> History:
    """The state that was given claims a message that its giver heard in the view itself. The taker has no journal."""
    history = opened(group)
    newcomer = history.start("E")
    newcomer.missing = True
    history.view("ABCDE")
    digest = newcomer.marks | {history["B"].address: history["B"].next_number}
    history[giver].log("state_get", bytes=10, checksum=77, position=0, peer=newcomer.address, digest=digest)
    history.multicast("BE")
    history.settle()
    return history


def state_passed_on(group: str) -> History:
    """E is given the state and gives it to F, which came with it: it has delivered nothing itself."""
    history = opened(group)
    for name in "EF":
        history.start(name)
    history.view("ABCDEF")
    digest = dict(history["E"].marks)
    for giver, taker in ("AE", "EF"):
        what = {"bytes": 10, "checksum": 77, "position": 0, "digest": digest}
        history[giver].log("state_get", peer=history[taker].address, **what)
        history[taker].log("state_set", peer=history[giver].address, **what)
    history.multicast("AEF")
    history.settle()
    return history


def excluded_untold(group: str, profile: str) -> History:
    """B is excluded with a run that nobody delivered, and is not told of it."""
    history = opened(group, profile)
    history.mark("fault", reason="isolation", members=[history["B"].address])
    history.send("B")
    history.exclude("B")
    return closed(history)


def copied_while_running(group: str, at: str) -> History:
    """The journal of `at` is copied first; all go on, and are copied a moment later. No mark, and nobody stops."""
    history = opened(group)
    history[at].copied()
    history.multicast("ABCD", count=2)
    history[at].log("purge", digest={history.alive[0].address: history[at].seq})
    history["D"].log("purge", digest={history.alive[0].address: history["D"].seq})
    newcomer = history.start("E")
    history.view("ABCDE")
    what = {"bytes": 10, "checksum": 77, "position": 0, "digest": dict(newcomer.marks)}
    history[at].log("state_get", peer=newcomer.address, **what)
    newcomer.log("state_set", peer=history[at].address, **what)
    history.multicast("ABCDE")
    history["D"].log("purge", digest={history.alive[0].address: history["D"].seq})
    return history


def copied_in_a_merge(group: str) -> History:
    """AB and CD merge. The journals of C and D are copied before all that their side had."""
    history = History(group)
    history.view("AB")
    history.view("CD")
    history["C"].copied()
    history["D"].copied()
    history.multicast("CD", count=3)
    merge(history, "AB", "CD")
    history.multicast("AB")
    return history


def copied_before_a_split(group: str, at: str, later: str) -> History:
    """The journal of `at` is copied first. Then a split leaves `at` alone, and a merge follows. One of the others is
    copied before the merge. The rest is copied while `at` is there, or when it is gone again."""
    history = opened(group, names="ABCD")
    history[at].copied()
    history.multicast("ABCD", count=2)
    for life in others(history, at):
        history[life].log("purge", digest={history.alive[0].address: history[life].seq})
    rest = others(history, at)
    history.view(at)
    history.view(rest)
    history[rest[-1]].copied()
    merge(history, at, rest)
    history.multicast("ABCD")
    if later == "gone":
        history.view(rest)
    return history


def copied_between_unicasts(group: str, at: str) -> History:
    """A sends to B, and stops. The journal of `at` was copied before."""
    history = opened(group, names="AB")
    history.arrives(history.unicast("A", "B"), "B")
    history[at].copied()
    for _ in range(2):
        history.arrives(history.unicast("A", "B"), "B")
    history["A"].log("stop", reason="left", gauges={})
    return history


def unsent_in_a_copy(group: str, at: str) -> History:
    """The copy of an open journal shows a later send than the one that it lacks."""
    history = opened(group)
    origin = history[at]
    run = Run(origin, origin.next_number, 1, 7)
    origin.next_number += 1
    history.deliver(run, "ABCD")
    history.multicast("ABCD")
    return history


def left_settled(group: str, at: str, lost: str) -> History:
    """No journal has a mark; all leave with empty tables.  `lost` is the sender of a last run that `at` lacks."""
    history = opened(group)
    history.deliver(history.send(lost), others(history, at))
    for life in history.alive:
        life.log("stats", gauges={"window": 0, "queue": 0})
        life.log("leave", reason="asked")
    return history
