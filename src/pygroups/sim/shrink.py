"""A schedule that breaks a promise made smaller: what can be taken away without losing the failure goes.

It goes from coarse to fine, since a small schedule is played faster: time, members, kinds of faults and weather first,
then step by step.  What is left is made weaker and plainer, and all of it again until nothing more can be taken away.
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

from . import simpler
from .promises.broken import Witness
from .runner import Outcome
from .schedule import Action, Schedule, Send, Start
from .simpler import is_fault, size_of

Play = Callable[[Schedule, int | None], Outcome]  # plays a schedule until that time, or to its end
TRIES: Final = 3_000
LIMIT_S: Final = 60.0


def alike(one: Witness, other: Witness) -> bool:
    """Whether two witnesses tell of the same failure: the same promise, in the same words but for numbers and names."""
    return (one.promise, _words(one.detail)) == (other.promise, _words(other.detail))


def _words(detail: str) -> str:
    return re.sub(r"\d+", "0", re.sub(r"\S+@\w+", "@", detail))


class Shrinker:
    """Looks for the smallest schedule that breaks the promise that `schedule` breaks; UsageError if that breaks none.

    At most so many `tries`, and about so many `seconds`.  `tell` hears how far it is.
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
        self.done = False  # nothing more can be taken away
        self._witness = outcome.witness
        self._failed_at = outcome.now
        self._play = play
        self._most = tries
        self._began = time.monotonic()
        self._limit = seconds
        self._tell = tell
        self._known: set[bytes] = set()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def _spent(self) -> bool:
        return self.tries >= self._most or (self._limit is not None and self.seconds >= self._limit)

    def run(self) -> Schedule:
        """Again and again, until nothing more can be taken away or the tries or the seconds are over."""
        before: Schedule | None = None
        while before != self.best and not self._spent:
            before = self.best
            self._coarsely()
            self._step_by_step()
            self._finely()
        self.done = not self._spent
        return self.best

    def said(self) -> str:
        """What came of it, in a sentence."""
        more = "nothing more can be taken away" if self.done else "there may be more to take away"
        effort = f"{self.tries:,} tries and {self.seconds:.1f} seconds"
        return f"{size_of(self.best)}, of {size_of(self.before)}, after {effort}: {more}"

    def figures(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "before": size_of(self.before)._asdict(),
            "after": size_of(self.best)._asdict(),
            "tries": self.tries,
            "seconds": round(self.seconds, 1),
            "done": self.done,
        }

    def _coarsely(self) -> None:
        self._cut_short()
        self._each(simpler.without_one)
        self._once(simpler.ordinary)
        self._drop_kinds()
        self._cut_short()

    def _step_by_step(self) -> None:
        self._drop(is_fault)
        self._once(simpler.all_sends_small)
        self._drop(lambda action: isinstance(action, Send))
        self._each(simpler.without_one)
        self._each(simpler.one_for_another)
        self._drop(lambda action: isinstance(action, Start))
        self._each(simpler.without_bystanders)
        self._cut_short()

    def _finely(self) -> None:
        self._each(simpler.calmer)
        self._each(simpler.plainer)
        self._weaken()
        self._each(simpler.sends_merged)
        self._once(simpler.rounder)

    def _try(self, candidate: Schedule) -> bool:
        if self._spent or candidate == self.best:
            return False
        known = msgspec.json.encode(candidate)
        if known in self._known:
            return False
        self._known.add(known)
        self.tries += 1
        outcome = self._play(candidate, self._patience())
        if outcome.witness is None or not alike(outcome.witness, self._witness):
            return False
        self.best, self._failed_at = candidate, outcome.now
        if self._tell is not None:
            self._tell(f"{size_of(candidate)} after {self.tries} tries and {self.seconds:.0f} s")
        return True

    def _patience(self) -> int:
        """How long a candidate may take: what fails far later than the best one would be no gain."""
        return 2 * self._failed_at + 20 * SECOND

    # -- ways through

    def _each(self, simpler: Callable[[Schedule], Iterator[Schedule]]) -> None:
        """Everything that is `simpler`, until nothing of it still fails."""
        while self._once(simpler):
            pass

    def _once(self, simpler: Callable[[Schedule], Iterator[Schedule]]) -> bool:
        """The first of what is `simpler` that still fails; whether there is one."""
        return any(self._try(candidate) for candidate in simpler(self.best))

    def _cut_short(self) -> None:
        self._each(lambda schedule: simpler.shorter(schedule, self._failed_at))

    def _drop_kinds(self) -> None:
        """All steps of one kind, but starts."""
        for kind in dict.fromkeys(type(action) for action in self.best.actions):
            if kind is not Start:
                self._try(simpler.without(self.best, [one for one in self.best.actions if type(one) is kind]))

    def _drop(self, chosen: Callable[[Action], bool]) -> None:
        """Of the chosen steps all, half, a quarter, ..., each one; the last ones first."""
        size = sum(map(chosen, self.best.actions))
        while size:
            end = sum(map(chosen, self.best.actions))
            while end > 0:
                those = [action for action in self.best.actions if chosen(action)]
                self._try(simpler.without(self.best, those[max(0, end - size) : end]))
                end -= size
            size //= 2

    def _weaken(self) -> None:
        """Each of the steps, as far as it goes."""
        for place in range(len(self.best.actions)):
            self._each(partial(simpler.milder, place=place))
