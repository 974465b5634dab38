"""The network of the simulated world: how long a frame takes, and whether it comes, from one process to another.

It promises nothing: frames are lost, repeated, reordered and late, as the schedule's weather says, although the real
driver's connections do less of that.  What layers must survive here they survive there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from .schedule import Weather, stream

CALM: Final = Weather()


class Link:
    """The way from one host to another."""

    __slots__ = ("base", "burst_left", "rng")

    def __init__(self, seed: int, src: str, dest: str, weather: Weather) -> None:
        self.rng = stream(seed, "link", src, dest)
        self.base = int(weather.delay * self.rng.uniform(0.5, 2.0))
        self.burst_left = 0


class Network:
    """Links between hosts, and which of them are cut."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self._seed = seed
        self._links: dict[tuple[str, str], Link] = {}
        self._cuts: dict[tuple[str, str], int] = {}  # how many cuts lie on a link
        self.counters = {"lost": 0, "repeated": 0, "reordered": 0, "delayed": 0, "late": 0, "cut": 0}
        self.set_weather(weather)

    def set_weather(self, weather: Weather) -> None:
        """From now on frames are treated so."""
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
        ):
            threshold += share
            if share:
                self._fates.append((threshold, fate))
        self._unusual = threshold

    @property
    def silences(self) -> bool:
        """Whether this weather can make a living process look dead."""
        return bool(self.weather.loss or self.weather.bursts or self.weather.tail)

    def link(self, src: str, dest: str) -> Link:
        """The way from `src` to `dest`."""
        found = self._links.get((src, dest))
        if found is None:
            found = self._links[src, dest] = Link(self._seed, src, dest, self.weather)
        return found

    # -- cuts

    def is_open(self, src: str, dest: str) -> bool:
        """Whether anything passes from `src` to `dest`."""
        return not self._cuts.get((src, dest))

    def connects(self, one: str, other: str) -> bool:
        """Whether both ways are open, as a connection needs."""
        return self.is_open(one, other) and self.is_open(other, one)

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        """Let nothing pass on these, also what is on its way."""
        for link in links:
            self._cuts[link] = self._cuts.get(link, 0) + 1

    def mend(self, links: Iterable[tuple[str, str]]) -> None:
        """Take one cut off each of these."""
        for link in links:
            if self._cuts.get(link, 0) > 0:
                self._cuts[link] -= 1

    def mend_all(self) -> None:
        """Everything passes again."""
        self._cuts.clear()

    # -- frames

    def delay(self, src: str, dest: str) -> int:
        """How long a small thing takes that cannot be lost, such as the news of a connection."""
        link = self.link(src, dest)
        return link.base + int(link.rng.random() * self.weather.jitter)

    def arrivals(self, src: str, dest: str) -> Iterator[int]:
        """When a frame that leaves now arrives: delays, none if it is lost, several if it is repeated."""
        if self._cuts and self._cuts.get((src, dest)):
            self.counters["cut"] += 1
            return
        link = self._links.get((src, dest)) or self.link(src, dest)
        rng = link.rng
        usual = link.base + int(rng.random() * self.weather.jitter)
        if not self._fates:
            yield usual
            return
        if link.burst_left:
            link.burst_left -= 1
            self.counters["lost"] += 1
            return
        draw = rng.random()
        if draw >= self._unusual:
            yield usual
        else:
            fate = next(fate for threshold, fate in self._fates if draw < threshold)
            yield from self._unusual_arrivals(link, fate, usual)

    def _unusual_arrivals(self, link: Link, fate: str, usual: int) -> Iterator[int]:
        weather, rng = self.weather, link.rng
        if fate == "burst":
            link.burst_left = rng.randint(1, weather.burst_frames)
            fate = "lost"
        self.counters[fate] += 1
        if fate == "lost":
            return
        if fate == "reordered":
            yield usual + rng.randint(0, weather.reorder_by)
        elif fate == "delayed":
            yield min(int(usual * rng.paretovariate(0.5)), weather.tail_max)
        else:
            yield usual
            if fate == "repeated":
                yield usual + rng.randint(0, 2 * usual)
            else:
                yield usual + rng.randint(100_000, max(100_001, weather.late_max))
