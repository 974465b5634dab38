"""The search: every distinct state of a small case, depth first, and a verdict on each end."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from pygroups.sim.promises.broken import Broken

from .judging import described, judge, unstable
from .world import Case, Choice, State, World

TELL_EVERY: Final = 20_000  # states between two lines of progress


class Violation(NamedTuple):
    """A broken promise, and the history that breaks it."""

    promise: str
    detail: str
    history: list[str]


class Result(NamedTuple):
    """What came of a search."""

    case: str
    profile: str
    states: int  # distinct
    moves: int  # from one state to another
    ends: int  # histories that were judged: in each, nothing is left to happen
    steps: int  # of single processes, each computed once
    complete: bool  # no state is left
    seconds: float
    violation: Violation | None

    def line(self) -> str:
        """The result in one sentence."""
        whole = "all" if self.complete else "the first"
        text = f"{self.case}, {self.profile}: {whole} {self.states:,} states, {self.ends:,} ends, {self.seconds:.1f} s"
        return text if self.violation is None else f"{text}: {self.violation.detail}"


class Search:
    """Visits each state once.  A state is kept as a digest, with the choice that led to it first."""

    def __init__(self, case: Case, profile: str) -> None:
        self.world = World(case, profile)
        self.case = case
        self.seen: dict[bytes, int] = {}
        self.before = array("q")  # the state from which each state was reached first
        self.by = array("q")  # and the choice
        self.choices: dict[Choice, int] = {}
        self.frontier: list[tuple[State, int]] = []
        self.moves = self.ends = 0
        self.setup: list[Choice] = []

    def run(
        self, most: int | None = None, seconds: float | None = None, tell: Callable[[str], None] = lambda _: None
    ) -> Result:
        """Search until all states are visited, or `most` of them, or for `seconds`, or until a promise is broken.
        `tell` gets a line now and then."""
        began = time.monotonic()
        violation: Violation | None = None
        at, tell_at = -1, TELL_EVERY
        try:
            state, self.setup = self.world.start()
            self._add(state, -1, Choice("time"))
            while self.frontier and (most is None or len(self.seen) < most):
                took = time.monotonic() - began
                if seconds is not None and took > seconds:
                    break
                state, at = self.frontier.pop()
                self._expand(state, at)
                if len(self.seen) >= tell_at:
                    tell_at += TELL_EVERY
                    tell(f"{self._so_far()}, {took:.0f} s")
        except Broken as broken:
            violation = self._violation(broken.witness.promise, str(broken), at)
        complete = not self.frontier and violation is None
        counts = (len(self.seen), self.moves, self.ends, len(self.world.lives.steps))
        took = round(time.monotonic() - began, 1)
        return Result(self.case.name, self.world.profile, *counts, complete, took, violation)

    def _so_far(self) -> str:
        counts = f"{len(self.seen):,} states, {len(self.frontier):,} to expand, {self.ends:,} ends"
        return f"{self.case.name}, {self.world.profile}: {counts}"

    def _expand(self, state: State, at: int) -> None:
        """Visit all states that follow, or judge the history that ends here."""
        world = self.world
        choices = world.choices(state)
        if not choices:
            self.ends += 1
            judge(world, self.setup, self._path(at))
        for choice in choices:
            self._add(world.after(state, choice), at, choice)
            for crash in world.crashes(state, choice):
                self._add(world.after(state, crash), at, crash)
        for crash in world.idle_crashes(state):
            self._add(world.after(state, crash), at, crash)

    def _add(self, state: State, before: int, choice: Choice) -> None:
        self.moves += 1
        key = blake2b(msgspec.msgpack.encode(state), digest_size=12).digest()
        number = self.seen.setdefault(key, len(self.before))
        if number == len(self.before):
            self.before.append(before)
            self.by.append(self.choices.setdefault(choice, len(self.choices)))
            self.frontier.append((state, number))
            lacks = unstable(self.world, state)
            if lacks:
                raise Broken("stability-safety", lacks)

    def _path(self, at: int) -> list[Choice]:
        choices, path = list(self.choices), []
        while self.before[at] >= 0:
            path.append(choices[self.by[at]])
            at = self.before[at]
        return path[::-1]

    def _violation(self, promise: str, detail: str, at: int) -> Violation:
        return Violation(promise, detail, described(self.world, self.setup, self._path(at)) if at >= 0 else [])
