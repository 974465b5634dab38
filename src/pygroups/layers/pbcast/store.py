"""The messages that a member holds: delivered ones, for members that lack them, and early ones, beyond a hole."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.limits import LATE_BUFFER, RUN_COST, Config
from pygroups.core.run import Run
from pygroups.core.tables import Tables

START: Final = 1  # the number of the first message of each origin
SLACK: Final = 64  # entries of forgotten runs that stay for a while
_NEXT: Final = attrgetter("next")


def runs_max(config: Config) -> int:
    """The most delivered runs that a store keeps."""
    return max(config.gossip_buffer, LATE_BUFFER) // RUN_COST + 1


def size_of(run: Run) -> int:
    """The memory of a kept run, in bytes: many small runs take more than their bodies."""
    return len(run.body) + RUN_COST


class Origin:
    """The messages of one origin."""

    __slots__ = ("early", "kept", "known", "known_at", "next")

    def __init__(self, next: int = START) -> None:
        self.next = next  # everything below was delivered here, or announced as a gap
        self.known = next  # messages below this number exist
        self.known_at = 0  # when that was learned
        self.kept: list[Run] = []  # delivered runs, ascending
        self.early: dict[int, Run] = {}  # by the first number

    @property
    def low(self) -> int:
        """The first message that is held; `next` if none is."""
        return self.kept[0].first if self.kept else self.next

    def held_from(self, low: int) -> int:
        """The first held message from `low` on; `next` if none is, and `low` if it is not below `next`."""
        at = bisect_right(self.kept, low, key=_NEXT)
        return max(low, self.kept[at].first if at < len(self.kept) else self.next)

    @property
    def first_early(self) -> int | None:
        """The first message beyond the hole that is held."""
        return min(self.early, default=None)

    @property
    def lacks(self) -> bool:
        """Whether a message exists that was not delivered here."""
        return self.known > self.next

    def learn(self, known: int, now: int) -> None:
        """Messages below `known` exist."""
        if known > self.known:
            self.known, self.known_at = known, now

    def holes(self, most: int) -> list[tuple[int, int]]:
        """The messages that this member lacks, as at most `most` ranges [low, high), ascending."""
        found, low = [], self.next
        for first, run in sorted(self.early.items()):
            if first > low:
                found.append((low, first))
            low = max(low, run.next)
        if self.known > low:
            found.append((low, self.known))
        return found[:most]

    def between(self, low: int, high: int) -> list[Run]:
        """The held runs with messages in [low, high)."""
        kept = self.kept
        at = bisect_right(kept, low, key=_NEXT)
        found = []
        while at < len(kept) and kept[at].first < high:
            found.append(kept[at])
            at += 1
        return found + [run for first, run in sorted(self.early.items()) if run.next > low and first < high]


class Store:
    """The messages of all origins, within a limit of bytes for the delivered ones, and the same for the early ones.
    Above the limit the oldest delivered ones are forgotten."""

    __slots__ = ("ages", "bytes_held", "early_bytes", "limit", "only_stored", "origins", "runs_kept")

    tables: ClassVar[Tables] = {
        "ages": lambda config, members: 2 * runs_max(config) + SLACK + 1,
        "ages[]": "fixed",
        "only_stored": "marks",
        "origins": "marks",
        "origins[].early": lambda config, members: config.gossip_early_max,
        "origins[].kept": lambda config, members: runs_max(config),
    }

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.origins: dict[Address, Origin] = {}
        self.only_stored: dict[Address, None] = {}  # origins whose messages an earlier process got, and not this one
        self.ages: deque[tuple[Address, int, int]] = deque()  # of the kept runs, in the order of arrival: the origin,
        # the number after its last message, and when it arrived
        self.bytes_held = 0  # of the kept runs
        self.early_bytes = 0
        self.runs_kept = 0

    def of(self, origin: Address) -> Origin:
        """The messages of `origin`."""
        found = self.origins.get(origin)
        if found is None:
            found = self.origins[origin] = Origin()
        return found

    def had(self, name: Address) -> bool:
        """Whether this member has begun with the messages of an origin."""
        return name in self.origins and name not in self.only_stored

    def begin(self, name: Address, next: int) -> None:
        """Begin with the message `next` of an origin.  Stored messages stay if they come before it."""
        kept = self.origins[name].kept if name in self.origins else []
        if kept and kept[-1].next > next:
            self.forget(name)
        self.only_stored.pop(name, None)
        origin = self.of(name)
        origin.next = origin.known = next

    def meet(self, name: Address) -> int:
        """Begin with a member that is new in the view, with its first message unless this member has begun already.
        Returns the number after the messages that an earlier process stored, and this one was not given; else START."""
        stored = name in self.only_stored
        self.only_stored.pop(name, None)
        origin = self.of(name)
        return origin.next if stored else START

    def restore(self, stored: Sequence[tuple[Run, int]], now: int) -> None:
        """Keep the runs that an earlier process stored, with the age of each: ascending per origin."""
        for run, age in stored:
            assert run.origin is not None
            origin = self.of(run.origin)
            self.only_stored[run.origin] = None
            assert run.first >= origin.next, "stored runs out of order"
            origin.next = origin.known = run.next
            self.keep(run, now - age)

    def keep(self, run: Run, now: int) -> int:
        """Keep a delivered run.  Returns how many runs were forgotten because of the limit."""
        origin = run.origin
        assert origin is not None
        self.of(origin).kept.append(run)
        self.ages.append((origin, run.next, now))
        self.bytes_held += size_of(run)
        self.runs_kept += 1
        count = 0
        while self.bytes_held > self.limit and self.ages:
            name, below, _ = self.ages.popleft()
            count += self.purge(name, below)
        return count

    def hold_early(self, origin: Origin, run: Run, most: int) -> bool:
        """Hold a run that lies beyond a hole.  Returns whether there is room: at most `most` runs of one origin."""
        room = len(origin.early) < most and self.early_bytes + size_of(run) <= self.limit
        if room:
            origin.early[run.first] = run
            self.early_bytes += size_of(run)
        return room

    def take_early(self, origin: Origin, first: int) -> Run | None:
        """Take the early run that begins at `first`."""
        run = origin.early.pop(first, None)
        if run is not None:
            self.early_bytes -= size_of(run)
        return run

    def purge(self, name: Address, below: int) -> int:
        """Forget the delivered messages of an origin below a number.  Returns how many runs that were."""
        origin = self.origins.get(name)
        if origin is None:
            return 0
        count = bisect_right(origin.kept, below, key=_NEXT)
        self.bytes_held -= sum([size_of(run) for run in origin.kept[:count]])
        del origin.kept[:count]
        self.runs_kept -= count
        if len(self.ages) > SLACK + 2 * self.runs_kept:
            self.ages = deque([age for age in self.ages if self._holds(age)])
        return count

    def _holds(self, age: tuple[Address, int, int]) -> bool:
        origin = self.origins.get(age[0])
        return origin is not None and origin.low < age[1]

    def purge_older(self, before: int) -> int:
        """Forget the delivered messages that arrived before a time.  Returns how many runs that were."""
        count = 0
        while self.ages and self.ages[0][2] < before:
            name, below, _ = self.ages.popleft()
            count += self.purge(name, below)
        return count

    def forget(self, name: Address) -> None:
        """Forget an origin."""
        self.only_stored.pop(name, None)
        origin = self.origins.pop(name, None)
        if origin is not None:
            self.bytes_held -= sum([size_of(run) for run in origin.kept])
            self.early_bytes -= sum([size_of(run) for run in origin.early.values()])
            self.runs_kept -= len(origin.kept)
