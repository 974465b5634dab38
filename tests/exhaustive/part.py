"""A part of a search: states that are visited, each once, with the way to each of them."""

from __future__ import annotations

import time
from array import array
from collections import deque
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from pygroups.sim.promises.broken import Broken

from .judging import Outcome, described, judge, outcome, unstable
from .waiting import Waiting
from .world import TIME, Choice, State, World


class Violation(NamedTuple):
    """A broken promise, and the history that breaks it."""

    promise: str
    detail: str
    history: list[str]


class Counts(NamedTuple):
    """What came of a part."""

    states: int
    moves: int
    ends: int
    steps: int
    whole: bool  # no state is left
    violation: Violation | None = None


class Limit(NamedTuple):
    """When a search stops early."""

    states: int | None = None
    end: float | None = None  # by the monotonic clock

    def reached(self, states: int) -> bool:
        if self.states is not None and states >= self.states:
            return True
        return self.end is not None and time.monotonic() > self.end


class Part:
    """Visits states.  Each is kept as a digest, with the choice that led to it first."""

    def __init__(self, world: World, waiting: Waiting, setup: list[Choice], origin: Part | None = None) -> None:
        self.world = world
        self.waiting = waiting
        self.setup = setup
        self.origin = origin  # the part in which the ways to the roots begin
        self.roots: list[tuple[int, Choice]] = []
        self.seen: dict[bytes, int] = {}
        self.before = array("q")  # the state from which each state was reached first; a root is below 0
        self.by = array("q")  # and the choice
        self.choices: dict[Choice, int] = {}
        self.frontier: deque[tuple[State, int]] = deque()
        self.outcomes: dict[Outcome, None] = {}  # of the ends after which an isolation ended
        self.moves = self.ends = 0
        self.at = -1  # the state that is expanded
        self.steps_before = len(world.lives.steps)

    def begin(self, state: State, at: int = -1, by: Choice = TIME) -> None:
        """Begin in this state, to which `by` leads from the state `at` of the origin."""
        self.roots.append((at, by))
        self.add(state, -len(self.roots), by)

    def add(self, state: State, before: int, choice: Choice) -> int:
        """The number of the state.  A new one is put on the frontier.  Raises Broken."""
        self.moves += 1
        key = blake2b(msgspec.msgpack.encode(state), digest_size=12).digest()
        number = self.seen.setdefault(key, len(self.before))
        if number == len(self.before):
            self.before.append(before)
            self.by.append(self.choices.setdefault(choice, len(self.choices)))
            self.frontier.append((state, number))
            lacks = unstable(self.world, state)
            if lacks:
                self.at = number
                raise Broken("stability-safety", lacks)
        return number

    def expand(self, state: State, at: int) -> list[tuple[Choice, int]]:
        """Visit the states that follow, or judge the history that ends here.  The moves, and where each leads."""
        self.at = at
        choices = self.world.choices(state)
        if not choices:
            self.ends += 1
            judge(self.world, self.setup, self.path(at), heals=self._heals(state))
        found = []
        for choice in self.waiting.moves(state, choices):
            found.append((choice, self.add(self.world.after(state, choice), at, choice)))
        return found

    def _heals(self, state: State) -> bool:
        """Whether the isolation ends in the time after this end: it does for the first end with each outcome."""
        if not state.cut_off:
            return False
        before = len(self.outcomes)
        self.outcomes[outcome(self.world, state)] = None
        return len(self.outcomes) > before

    def path(self, at: int) -> list[Choice]:
        """The choices that lead to a state."""
        choices, path = list(self.choices), []
        while self.before[at] >= 0:
            path.append(choices[self.by[at]])
            at = self.before[at]
        if self.origin is not None:
            root, by = self.roots[-1 - self.before[at]]
            path += [by, *self.origin.path(root)[::-1]]
        return path[::-1]

    def counts(self, violation: Violation | None = None) -> Counts:
        whole = not self.frontier and violation is None
        steps = len(self.world.lives.steps) - self.steps_before
        return Counts(len(self.seen), self.moves, self.ends, steps, whole, violation)

    def violation(self, broken: Broken) -> Violation:
        history = described(self.world, self.setup, self.path(self.at)) if self.at >= 0 else []
        return Violation(broken.witness.promise, str(broken), history)
