"""The search: every distinct state of a small case that has to be visited, and a verdict on each end.

First come the states before the crash.  After it, a state belongs to the class of the process that has crashed and of
all that the judge has heard of that process.  No state of one class leads to another, so each class is searched alone:
in any process, and with an empty table of visited states.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from typing import Final, NamedTuple

from pygroups.sim.promises.broken import Broken

from .kept import Kept
from .part import Counts, Limit, Part, Violation
from .waiting import Waiting
from .world import NAMES, Case, Choice, State, World

TELL_SECONDS: Final = 20.0  # between two lines of progress


class Result(NamedTuple):
    """What came of a search."""

    case: str
    profile: str
    states: int  # distinct
    moves: int  # from one state to another
    ends: int  # histories that were judged: in each, nothing is left to happen
    steps: int  # of single processes, each computed once in each process that searches
    complete: bool  # no state is left
    seconds: float
    violation: Violation | None

    def line(self) -> str:
        """The result in one sentence."""
        whole = "all" if self.complete else "the first"
        text = f"{self.case}, {self.profile}: {whole} {self.states:,} states, {self.ends:,} ends, {self.seconds:.1f} s"
        return text if self.violation is None else f"{text}: {self.violation.detail}"


class Crashed(NamedTuple):
    """A class of states after the crash, and where it begins."""

    who: int
    history: bytes  # of the crashed process
    roots: dict[State, tuple[int, Choice]]  # each with the state before the crash, and the choice

    @property
    def name(self) -> str:
        return f"{NAMES[self.who]} {self.history.hex()}"


class Search:
    """Searches one case."""

    def __init__(self, case: Case, profile: str, jobs: int = 1, kept: Kept | None = None) -> None:
        assert case.crashes <= 1, "a class belongs to one crash"
        self.world = World(case, profile)
        self.case = case
        self.jobs = jobs
        self.kept = kept
        self.first = Part(self.world, Waiting(self.world), [])
        self.classes: dict[int, Crashed] = {}
        self.limit = Limit()
        self.found: list[Counts] = []
        self._tell: Callable[[str], None] = lambda _: None
        self._began = self._told = 0.0

    def run(
        self, most: int | None = None, seconds: float | None = None, tell: Callable[[str], None] = lambda _: None
    ) -> Result:
        """Search until all states are visited, or about `most` of them, or for `seconds`, or until a promise is
        broken.  `tell` gets a line now and then."""
        self._began = self._told = time.monotonic()
        self._tell = tell
        self.limit = Limit(most, None if seconds is None else self._began + seconds)
        self.found = [self._before_the_crash()]
        if self.found[0].whole:
            for counts in self._after_the_crash():
                self.found.append(counts)
                self._say(f"{len(self.found) - 1} of {len(self.classes)} classes")
                if counts.violation is not None:
                    break
        return self._result()

    def _result(self) -> Result:
        violation = next((one.violation for one in self.found if one.violation is not None), None)
        states, moves, ends, steps = (sum(column) for column in list(zip(*self.found, strict=True))[:4])
        complete = len(self.found) == len(self.classes) + 1 and all(one.whole for one in self.found)
        took = round(time.monotonic() - self._began, 1)
        return Result(self.case.name, self.world.profile, states, moves, ends, steps, complete, took, violation)

    def _say(self, where: str) -> None:
        now = time.monotonic()
        if now > self._told + TELL_SECONDS:
            self._told = now
            result = self._result()
            counts = f"{result.states:,} states, {result.ends:,} ends, {result.seconds:.0f} s"
            self._tell(f"{self.case.name}, {self.world.profile}: {where}, {counts}")

    # -- before the crash

    def _before_the_crash(self) -> Counts:
        part, world = self.first, self.world
        try:
            state, part.setup = world.start()
            part.begin(state)
            earlier = bytearray(1)  # per state, a bit for each process that may as well crash before it is reached
            while part.frontier and not self.limit.reached(len(part.seen)):
                state, at = part.frontier.popleft()
                moves = part.expand(state, at)
                if not state.crashes:
                    continue
                earlier.extend(bytes(len(part.seen) - len(earlier)))
                for choice, to in moves:
                    if to > at:
                        earlier[to] |= part.waiting.elsewhere(state, choice)
                    if choice.who >= 0 and not earlier[at] >> choice.who & 1:
                        for crash in world.crashes(state, choice):
                            self._crash(state, at, crash)
                for crash in world.idle_crashes(state):
                    self._crash(state, at, crash)
        except Broken as broken:
            return part.counts(part.violation(broken))
        return part.counts()

    def _crash(self, state: State, at: int, crash: Choice) -> None:
        """Note where a class begins."""
        self.first.moves += 1
        after = self.world.after(state, crash)
        life = after.lives[crash.who]
        found = self.classes.get(life)
        if found is None:
            history = self.world.lives.lives[life].history
            found = self.classes[life] = Crashed(crash.who, history, {})
        found.roots.setdefault(after, (at, crash))

    # -- after the crash

    def _after_the_crash(self) -> Iterator[Counts]:
        """Search the classes, those with the most roots first."""
        classes = sorted(self.classes.values(), key=lambda one: (-len(one.roots), one.name))
        names = []
        for one in classes:
            done = None if self.kept is None else self.kept.counts(one.name)
            if done is None:
                names.append(one)
            else:
                yield done
        for name, counts in self._searched(names):
            if self.kept is not None and counts.whole:
                self.kept.keep(name, counts)
            yield counts

    def _searched(self, classes: list[Crashed]) -> Iterator[tuple[str, Counts]]:
        if self.jobs == 1 or len(classes) < 2:
            for one in classes:
                if self.limit.reached(sum(counts.states for counts in self.found)):
                    return
                yield one.name, self.search(one)
            return
        _SEARCHED[:] = [self, classes]
        gc.freeze()
        with get_context("fork").Pool(self.jobs) as pool:
            yield from pool.imap_unordered(_search, range(len(classes)))

    def search(self, crashed: Crashed) -> Counts:
        """Visit all states of a class."""
        first, limit = self.first, self.limit
        part = Part(self.world, first.waiting, first.setup, first)
        if limit.states is not None:
            limit = limit._replace(states=limit.states - sum(counts.states for counts in self.found))
        try:
            for state, (at, choice) in crashed.roots.items():
                part.begin(state, at, choice)
            while part.frontier and not limit.reached(len(part.seen)):
                part.expand(*part.frontier.pop())
        except Broken as broken:
            return part.counts(part.violation(broken))
        return part.counts()


_SEARCHED: list = []


def _search(number: int) -> tuple[str, Counts]:
    """Search one class, in a process that was forked after the states before the crash were known."""
    search, classes = _SEARCHED
    return classes[number].name, search.search(classes[number])
