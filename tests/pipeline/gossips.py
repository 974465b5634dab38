"""Histories of gossip groups that state a bound for the share of the messages that their members miss."""

from __future__ import annotations

from pygroups.core.limits import MILLION
from tests.pipeline.histories import History

BOUND = 10_000  # 1 %, in millionths


def bounded(group: str, names: str = "ABCD", epsilon_ppm: int = BOUND, messages: int = 100) -> History:
    """A group in its first view, in which everybody has sent `messages` messages that all members have."""
    history = History(group, "gossip", "")
    history.epsilon_ppm = epsilon_ppm
    for name in names:
        history.start(name)
    history.view(names)
    history.multicast(names, count=messages)
    return history


def miss(history: History, origin: str, at: str, count: int) -> None:
    """`origin` sends messages that each member of `at` announces as a gap, and that the others deliver."""
    run = history.send(origin, count)
    history.deliver(run, "".join(life.name for life in history.alive if life.name not in at))
    history.gap(at, run)


def closed(history: History) -> History:
    """All send once more, so that the numbers go on, and settle."""
    history.multicast("".join(life.name for life in history.alive))
    history.settle()
    return history


def missed(group: str, at: str, count: int, epsilon_ppm: int = BOUND) -> History:
    """1,200 messages at a member and more, of which each member of `at` misses `count`."""
    history = bounded(group, epsilon_ppm=epsilon_ppm)
    miss(history, "B", at, count)
    return closed(history)


def missed_everywhere(group: str) -> History:
    """No member misses many: it is their sum that is above the bound."""
    history = bounded(group)
    for origin, at in ("AB", "BC", "CD", "DA", "BA", "CB", "DC", "AD"):
        miss(history, origin, at, 7)
    return closed(history)


def missed_by_the_dead(group: str, at: str) -> History:
    """A member that does not reach quiet is not judged."""
    history = bounded(group)
    miss(history, "B", at, 100)
    history.crash(at)
    history.view("".join(life.name for life in history.alive))
    return closed(history)


def never_arrived(group: str, at: str) -> History:
    """The last messages of B neither arrive at one member nor are announced to it."""
    history = bounded(group)
    run = history.send("B", 100)
    history.deliver(run, "".join(life.name for life in history.alive if life.name != at))
    history.settle()
    return history


def missed_while_apart(group: str, at: str) -> History:
    """A member that was out of the views of the others misses what they sent meanwhile."""
    history = bounded(group)
    rest = "".join(name for name in "ABCD" if name != at)
    history.mark("fault", reason="cut", members=[history[at].address])
    history.view(rest)
    run = history.send("B", 200)
    history.deliver(run, rest)
    history.alive = [history[name] for name in "ABCD"]
    history.view("ABCD")
    history.gap(at, run)
    return closed(history)


def joined_late(group: str, at_start: int, missed: int = 0) -> History:
    """A member that joins begins with a message; what was sent before is not missed."""
    history = bounded(group, "ABC", messages=at_start)
    history.start("D")
    history.view("ABCD")
    history.multicast("ABCD", count=50)
    if missed:
        miss(history, "B", "D", missed)
    return closed(history)


def joined_behind(group: str) -> History:
    """A member begins early, because the member that told it where lacked messages: it was not there when they were
    sent."""
    history = bounded(group, "ABC", messages=300)
    history.start("D")
    told, history["A"].marks = history["A"].marks, {history["C"].address: 300}
    history.view("ABCD")
    history["A"].marks = told
    for name in "AB":
        label = {"origin": name, "origin_incarnation": history[name].incarnation}
        history["D"].log("gap", **label, first=1, count=300)
        history["D"].marks[history[name].address] = 300
    history.multicast("ABCD", count=50)
    return closed(history)


def left_one_by_one(group: str, gap: int) -> History:
    """No marks: each member leaves after its tables were empty, and hears nothing of later messages."""
    history = bounded(group)
    if gap:
        miss(history, "B", "C", gap)
    history.multicast("ABCD")
    for name in "CADB":
        history[name].log("stats", gauges={"window": 0})
        history.leave(name)
        rest = "".join(life.name for life in history.alive)
        if rest:
            history.view(rest)
            history.multicast(rest, count=30)
    return history


def without_bound(group: str) -> History:
    return missed(group, "C", 400, epsilon_ppm=0)


def with_any_share(group: str) -> History:
    return missed(group, "C", 400, epsilon_ppm=MILLION)


def too_few(group: str) -> History:
    """Four messages: all of them may be missed by chance."""
    history = bounded(group, "AB", messages=1)
    miss(history, "A", "B", 1)
    history.settle()
    return history
