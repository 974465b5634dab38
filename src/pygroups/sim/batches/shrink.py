"""Minimize a schedule that breaks a promise: remove everything that the failure does not need.

The shrinker goes from coarse to fine, because a small schedule is played faster.  The first phase reduces the time, the
members, the kinds of faults and the weather.  The next phases remove single steps, and make the remaining steps weaker
and plainer.  The shrinker repeats all phases until nothing more can be removed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND

from ..promises.broken import Witness
from ..schedules.schedule import Schedule
from ..schedules.steps import Action, Send, StartProcess
from . import simpler
from .runner import Outcome
from .simpler import is_fault, size_of

Play = Callable[[Schedule, int | None], Outcome]  # plays a schedule until that time, or to its end
Simplify = Callable[[Schedule], Iterator[Schedule]]
TRIES: Final = 3_000
LIMIT_S: Final = 60.0
LUCK: Final = 8  # number of other random seeds
MANY: Final = 12  # number of steps that counts as many
FEW: Final = 3  # number of members that a reader follows easily
HURRY: Final = 4  # a failure by timeout gets this fraction of its bound at first


def alike(one: Witness, other: Witness) -> bool:
    """Whether two witnesses show the same failure: the same promise and the same text, except for numbers and names."""
    return (one.promise, _words(one.detail)) == (other.promise, _words(other.detail))


def _words(detail: str) -> str:
    return re.sub(r"\d+", "0", re.sub(r"\S+@\w+", "@", detail))


class Shrinker:
    """Searches for the smallest schedule that breaks the same promise as `schedule`.  Raises UsageError if `schedule`
    breaks none.

    The search plays at most `tries` schedules, and takes about `seconds` seconds.  `tell` receives its progress.
    """

    def __init__(
        self,
        schedule: Schedule,
        play: Play,
        *,
        tries: int = TRIES,
        seconds: float | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        outcome = play(schedule, None)
        if outcome.witness is None:
            raise UsageError(f"the schedule of seed {schedule.seed} breaks no promise: there is nothing to shrink")
        self.before = self.best = schedule
        self.tries = 0
        self.done = False  # nothing more can be removed
        self._witness = outcome.witness
        self._failed_at = outcome.now
        self._sure = schedule, outcome.now  # the best schedule that failed with its full bound
        self._waits = outcome.now >= schedule.heal_at + schedule.bound  # whether the failure is a timeout
        self._hurry = HURRY if self._waits else 1
        self._stormy = False
        self._play = play
        self._most = tries
        self._began = time.monotonic()
        self._limit = seconds
        self._tell = tell
        self._known: set[bytes] = set()

    @property
    def seconds(self) -> float:
        """The time since the start, in seconds."""
        return time.monotonic() - self._began

    @property
    def _spent(self) -> bool:
        return self.tries >= self._most or (self._limit is not None and self.seconds >= self._limit)

    def run(self) -> Schedule:
        """Repeat all phases until nothing more can be removed, or the tries or the seconds are used up."""
        while True:
            before = self.best
            for phase in (self._coarsely, self._step_by_step, self._in_a_storm, self._finely):
                phase()
                self._make_sure()
            if self.best == before and not self._with_luck():
                break
        self.done = not self._spent
        return self.small

    @property
    def small(self) -> Schedule:
        """The smallest schedule that fails for sure."""
        return self.best if self._hurry == 1 else self._sure[0]

    def said(self) -> str:
        """The result in a sentence."""
        more = "nothing more can be removed" if self.done else "more may be removable"
        effort = f"{self.tries:,} tries and {self.seconds:.1f} seconds"
        return f"{size_of(self.small)}, of {size_of(self.before)}, after {effort}: {more}"

    def figures(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "before": size_of(self.before)._asdict(),
            "after": size_of(self.small)._asdict(),
            "tries": self.tries,
            "seconds": round(self.seconds, 1),
            "done": self.done,
        }

    def _coarsely(self) -> None:
        self._cut_short()
        self._each(simpler.without_one)
        self._each(simpler.ordinary)
        self._drop_kinds()
        self._cut_short()

    def _step_by_step(self) -> None:
        self._drop(is_fault)
        self._once(simpler.all_sends_small)
        self._drop(lambda action: isinstance(action, Send))
        self._each(simpler.without_one)
        self._each(simpler.one_for_another)
        self._drop(lambda action: isinstance(action, StartProcess))
        self._each(simpler.without_bystanders)
        self._cut_short()

    def _finely(self) -> None:
        self._each(simpler.calmer)
        self._each(simpler.plainer)
        self._weaken()
        self._each(simpler.sends_merged)
        self._once(simpler.rounder)
        self._once(simpler.sooner)

    def _in_a_storm(self) -> None:
        """Try worse weather with fewer steps, if the weather needed many steps to cause the failure."""
        if self._stormy or size_of(self.best).steps <= MANY:
            return
        self._stormy = True
        seeds = range(self.before.seed, self.before.seed + 2 * LUCK)
        if any(self._once(_by_chance(simpler.stormier, seed)) for seed in seeds):
            self._step_by_step()

    def _with_luck(self) -> bool:
        """Try removals with other random seeds.  A removal also changes the times of events, and can hide the
        failure by that alone.  Returns whether anything was removed."""
        before = self.best
        size = size_of(before)
        small = size.members <= FEW and size.steps <= MANY
        for luck in range(1, 1 + (LUCK // 2 if small else LUCK)):
            self._each(_by_chance(simpler.without_any, self.before.seed + luck))
        return self.best != before

    def _try(self, candidate: Schedule) -> bool:
        if self._spent or candidate == self.best:
            return False
        known = msgspec.json.encode(candidate)
        if known in self._known:
            return False
        self._known.add(known)
        self.tries += 1
        if not self._reproduce(candidate, self._hurry):
            return False
        self.best = candidate
        if self._tell is not None:
            self._tell(f"{size_of(candidate)} after {self.tries} tries and {self.seconds:.0f} s")
        return True

    def _reproduce(self, candidate: Schedule, hurry: int) -> bool:
        """Play `candidate` with the bound divided by `hurry`.  Returns whether it fails in the same way."""
        played = msgspec.structs.replace(candidate, bound=candidate.bound // hurry)
        until = None if self._waits else 2 * self._failed_at + 20 * SECOND  # a failure much later is no gain
        outcome = self._play(played, until)
        if outcome.witness is None or not alike(outcome.witness, self._witness):
            return False
        self._failed_at = outcome.now
        return True

    def _make_sure(self) -> None:
        """Play the best schedule with its full bound.  A failure by timeout mostly shows long before the bound, so
        the search uses a fraction of it.  If the best schedule does not fail with the full bound, return to the last
        sure one."""
        if self._hurry == 1 or self.best == self._sure[0]:
            return
        if self._reproduce(self.best, 1):
            self._sure = self.best, self._failed_at
        else:
            self.best, self._failed_at = self._sure
            self._hurry //= 2
            self._known.clear()

    # -- search

    def _each(self, simplify: Simplify) -> None:
        """Take simpler schedules until none of them fails."""
        while self._once(simplify):
            pass

    def _once(self, simplify: Simplify) -> bool:
        """Take the first simpler schedule that still fails; returns whether there is one."""
        return any(self._try(candidate) for candidate in simplify(self.best))

    def _cut_short(self) -> None:
        self._each(lambda schedule: simpler.shorter(schedule, self._failed_at))

    def _drop_kinds(self) -> None:
        """Remove all steps of one kind, for each kind except starts."""
        for kind in dict.fromkeys(type(action) for action in self.best.actions):
            if kind is not StartProcess:
                self._try(simpler.without(self.best, [one for one in self.best.actions if type(one) is kind]))

    def _drop(self, chosen: Callable[[Action], bool]) -> None:
        """Remove all chosen steps, then halves, quarters and so on down to single steps, the last steps first."""
        size = sum(map(chosen, self.best.actions))
        while size:
            end = sum(map(chosen, self.best.actions))
            while end > 0:
                those = [action for action in self.best.actions if chosen(action)]
                self._try(simpler.without(self.best, those[max(0, end - size) : end]))
                end -= size
            size //= 2

    def _weaken(self) -> None:
        """Weaken each step as far as possible."""
        for place in range(len(self.best.actions)):
            self._each(partial(simpler.milder, place=place))


def _by_chance(simplify: Simplify, seed: int) -> Simplify:
    """The same schedules with another random seed."""

    def reseeded(schedule: Schedule) -> Iterator[Schedule]:
        return (simpler.changed(one, seed=seed) for one in simplify(schedule))

    return reseeded
