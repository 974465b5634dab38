"""The network of the simulated world: the delay and the fate of each frame between two processes.

The network promises nothing: frames are lost, repeated, reordered and late as the schedule's weather says.  The real
driver's connections do less of that, so the layers meet harder conditions here than in production.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from pygroups.core.limits import MILLISECOND

from ..schedules.schedule import Weather, stream

CALM: Final = Weather()
LATE_MIN: Final = 100 * MILLISECOND
BURST: Final = 1 * MILLISECOND  # time in which all frames of a clogged link arrive after its end

Arrivals = Sequence[tuple[int, bytes, bool]]  # delay, bytes, and whether the frame outlives its receiver

COUNTED: Final = (
    *("bursts", "lost", "repeated", "reordered", "delayed", "late", "cut", "clogged"),
    *("flipped", "truncated", "glued", "replayed"),
)


class Link:
    """The link from one host to another."""

    __slots__ = ("base", "before", "burst_left", "rng")

    def __init__(self, seed: int, src: str, dest: str, weather: Weather) -> None:
        self.rng = stream(seed, "link", src, dest)
        self.base = int(weather.delay * self.rng.uniform(0.5, 2.0))
        self.burst_left = 0
        self.before = b""  # the last frame that was corrupted


class SimulatedNetwork:
    """Links between hosts, with their cuts, clogs and extra delays."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self._seed = seed
        self._links: dict[tuple[str, str], Link] = {}
        self.cuts: dict[tuple[str, str], int] = {}  # number of cuts of a link
        self.clogs: dict[tuple[str, str], int] = {}  # the end of a clog; arriving frames wait until then
        self.refusals: dict[tuple[str, str], int] = {}  # number of cuts of a link that refuse connections
        self.distances: dict[tuple[str, str], int] = {}  # extra delay of a link, in microseconds
        self.changes = 0  # number of changes to any of these
        self.counters = dict.fromkeys(COUNTED, 0)
        self.set_weather(weather)

    def set_weather(self, weather: Weather) -> None:
        """Treat frames according to `weather` from now on."""
        self.changes += 1
        self.weather = weather
        w = weather
        # One draw decides whether anything unusual happens to a frame; these are its thresholds.
        self._fates: list[tuple[float, str]] = []
        threshold = 0.0
        for share, fate in (
            (w.loss, "lost"),
            (w.bursts, "burst"),
            (w.repeat, "repeated"),
            (w.reorder, "reordered"),
            (w.tail, "delayed"),
            (w.late, "late"),
            (w.corrupt, "corrupted"),
        ):
            threshold += share
            if share:
                self._fates.append((threshold, fate))
        self._unusual = threshold

    @property
    def silences(self) -> bool:
        """Whether this weather can make a living process look dead."""
        w = self.weather
        return bool(w.loss or w.bursts or w.tail or w.corrupt)

    def is_disturbed(self, now: int) -> bool:
        """Whether any link is cut, clogged, or slower than usual."""
        return any(kind != "weather" for kind in self.troubles(now))

    def troubles(self, now: int) -> list[str]:
        """The kinds of active faults that can make a living process look dead."""
        lasts = {"weather": self.silences, "cut": any(self.cuts.values()), "far": any(self.distances.values())}
        lasts["clog"] = any(until > now for until in self.clogs.values())
        return [kind for kind, does in lasts.items() if does]

    def link(self, src: str, dest: str) -> Link:
        """The link from `src` to `dest`."""
        found = self._links.get((src, dest))
        if found is None:
            found = self._links[src, dest] = Link(self._seed, src, dest, self.weather)
        return found

    # -- cuts

    def is_open(self, src: str, dest: str) -> bool:
        """Whether frames pass from `src` to `dest`."""
        return not self.cuts.get((src, dest))

    def connects(self, one: str, other: str) -> bool:
        """Whether both directions are open, as a connection needs."""
        return self.is_open(one, other) and self.is_open(other, one)

    def cut(self, links: Iterable[tuple[str, str]], *, refused: bool = False) -> None:
        """Stop all frames on these links, also those in transit.  Connection attempts get no answer, or are refused."""
        self.changes += 1
        for link in links:
            self.cuts[link] = self.cuts.get(link, 0) + 1
            self.refusals[link] = self.refusals.get(link, 0) + refused

    def mend(self, links: Iterable[tuple[str, str]], *, refused: bool = False) -> None:
        """Remove one cut from each of these links."""
        self.changes += 1
        for link in links:
            if self.cuts.get(link, 0) > 0:
                self.cuts[link] -= 1
                self.refusals[link] -= refused

    def mend_all(self) -> None:
        """Remove all cuts, clogs and extra delays."""
        self.changes += 1
        for troubles in (self.cuts, self.clogs, self.refusals, self.distances):
            troubles.clear()

    def refuses(self, src: str, dest: str) -> bool:
        """Whether connection attempts from `src` to `dest` are refused, as if no process listened at `dest`."""
        return self.refusals.get((src, dest), 0) > 0 and self.is_open(dest, src)

    # -- distances

    def move(self, links: Iterable[tuple[str, str]], by: int) -> None:
        """Add `by` microseconds to the delay of these links; a negative value shortens it."""
        self.changes += 1
        for link in links:
            self.distances[link] = max(0, self.distances.get(link, 0) + by)

    def farthest(self) -> int:
        """The largest extra delay of any link, in microseconds."""
        return max(self.distances.values(), default=0)

    # -- clogs

    def clog(self, links: Iterable[tuple[str, str]], until: int) -> None:
        """Hold all frames that arrive on these links until `until`."""
        self.changes += 1
        for link in links:
            self.clogs[link] = max(until, self.clogs.get(link, 0))

    def unclog(self, src: str, dest: str) -> Random:
        """End the clog of this link.  Returns the random stream of the link, for the delays of the held frames."""
        self.changes += 1
        self.clogs.pop((src, dest), None)
        return self.link(src, dest).rng

    def held(self, src: str, dest: str, now: int) -> int | None:
        """The time that a frame arriving now must wait, if the link is clogged; None otherwise."""
        until = self.clogs.get((src, dest), 0)
        if until <= now:
            return None
        self.counters["clogged"] += 1
        return until - now + int(self.link(src, dest).rng.random() * BURST)

    # -- frames

    def delay(self, src: str, dest: str) -> int:
        """The delay of a small message that cannot be lost, such as the news of an ended connection."""
        link = self.link(src, dest)
        return link.base + self.distances.get((src, dest), 0) + int(link.rng.random() * self.weather.jitter)

    def arrivals(self, src: str, dest: str, frame: bytes) -> Arrivals:
        """The arrivals of a frame that leaves now: none if the frame is lost, several if it is repeated."""
        if self.cuts and self.cuts.get((src, dest)):
            self.counters["cut"] += 1
            return ()
        link = self._links.get((src, dest)) or self.link(src, dest)
        rng = link.rng
        usual = link.base + int(rng.random() * self.weather.jitter)
        if self.distances:
            usual += self.distances.get((src, dest), 0)
        if not self._fates:
            return ((usual, frame, False),)
        if link.burst_left:
            link.burst_left -= 1
            self.counters["lost"] += 1
            return ()
        draw = rng.random()
        if draw >= self._unusual:
            return ((usual, frame, False),)
        fate = next(fate for threshold, fate in self._fates if draw < threshold)
        return self._unusual_arrivals(link, fate, usual, frame)

    def _unusual_arrivals(self, link: Link, fate: str, usual: int, frame: bytes) -> Arrivals:
        weather, rng = self.weather, link.rng
        if fate == "corrupted":
            fate, frame = corrupted(rng, frame, link)
            self.counters[fate] += 1
            return ((usual, frame, False),)
        if fate == "burst":
            self.counters["bursts"] += 1
            link.burst_left = rng.randint(1, weather.burst_frames)
            fate = "lost"
        self.counters[fate] += 1
        if fate == "lost":
            return ()
        if fate == "reordered":
            return ((usual + rng.randint(0, weather.reorder_by), frame, False),)
        if fate == "delayed":
            return ((min(int(usual * rng.paretovariate(0.5)), weather.tail_max), frame, False),)
        if fate == "repeated":
            return (usual, frame, False), (usual + rng.randint(0, 2 * usual), frame, False)
        again = usual + rng.randint(LATE_MIN, max(LATE_MIN + 1, weather.late_max))
        return (usual, frame, False), (again, frame, True)


def corrupted(rng: Random, frame: bytes, link: Link) -> tuple[str, bytes]:
    """The kind of damage to the frame, and the damaged bytes that arrive instead."""
    before, link.before = link.before or frame, frame
    kind = rng.choice(("flipped", "truncated", "glued"))
    if kind == "truncated":
        return kind, frame[: rng.randrange(1, len(frame))]
    if kind == "glued":
        return kind, before + frame
    damaged = bytearray(frame)
    for bit in rng.sample(range(8 * len(frame)), rng.choice((1, 1, 2, 8))):
        damaged[bit // 8] ^= 1 << bit % 8
    return kind, bytes(damaged)
