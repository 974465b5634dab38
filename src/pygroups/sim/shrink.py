"""A schedule that breaks a promise made smaller: what can be taken away without losing the failure goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from pygroups.core.limits import SECOND, Config

from .network import CALM
from .promises.broken import Witness
from .schedule import Action, Cut, Habits, Ring, Schedule

Fails = Callable[[Schedule], bool]


def shrink(schedule: Schedule, fails: Fails, tries: int = 1_000, tell: Callable[[str], None] | None = None) -> Schedule:
    """The smallest schedule found that still `fails`, after at most so many `tries`."""
    shrinker = _Shrinker(schedule, fails, tries, tell)
    shrinker.run()
    return shrinker.best


def alike(one: Witness, other: Witness) -> bool:
    """Whether two witnesses tell of the same failure: the same promise, in the same words but for numbers and names."""
    return (one.promise, _words(one.detail)) == (other.promise, _words(other.detail))


def _words(detail: str) -> str:
    return re.sub(r"\d+", "0", re.sub(r"\S+@\w+", "@", detail))


class _Shrinker:
    def __init__(self, schedule: Schedule, fails: Fails, tries: int, tell: Callable[[str], None] | None) -> None:
        self.best = schedule
        self._fails = fails
        self._left = tries
        self._tell = tell

    def run(self) -> None:
        """Again and again, until nothing more can be taken away."""
        before: Schedule | None = None
        while before != self.best and self._left > 0:
            before = self.best
            self._drop_actions()
            self._each(_calmer)
            self._each(_plainer)
            self._each(_shorter)
            self._each(_fewer_names)

    def _try(self, candidate: Schedule) -> bool:
        if self._left <= 0 or candidate == self.best:
            return False
        self._left -= 1
        if not self._fails(candidate):
            return False
        self.best = candidate
        if self._tell is not None:
            self._tell(f"{len(candidate.actions)} steps, {len(candidate.names)} names, {self._left} tries left")
        return True

    def _drop_actions(self) -> None:
        """Half of them, a quarter, ..., each one."""
        size = max(1, len(self.best.actions) // 2)
        while True:
            at = 0
            while at < len(self.best.actions):
                actions = self.best.actions
                if not self._try(_with(self.best, actions=actions[:at] + actions[at + size :])):
                    at += size
            if size == 1:
                return
            size = max(1, size // 2)

    def _each(self, simpler: Callable[[Schedule], Iterator[Schedule]]) -> None:
        """Everything that is `simpler`, until nothing of it still fails."""
        while any(self._try(candidate) for candidate in simpler(self.best)):
            pass


def _with(schedule: Schedule, **changes: object) -> Schedule:
    return msgspec.structs.replace(schedule, **changes)


def _calmer(schedule: Schedule) -> Iterator[Schedule]:
    weather = schedule.weather
    yield _with(schedule, weather=CALM)
    for name in ("loss", "bursts", "repeat", "reorder", "tail", "late", "delay", "jitter"):
        calm = getattr(CALM, name)
        if getattr(weather, name) != calm:
            yield _with(schedule, weather=msgspec.structs.replace(weather, **{name: calm}))


def _plainer(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.rejoin:
        yield _with(schedule, rejoin=False)
    for name in schedule.config:
        config = {key: value for key, value in schedule.config.items() if key != name}
        if 2 * Config(**config).heartbeat <= Config(**config).heartbeat_timeout:  # else the living look dead for ever
            yield _with(schedule, config=config)
    for name, habits in schedule.habits.items():
        if habits != Habits():
            yield _with(schedule, habits=schedule.habits | {name: Habits()})


def _shorter(schedule: Schedule) -> Iterator[Schedule]:
    """What happens late happens when everything else is over; rounder times."""
    last = max((_end(action) for action in schedule.actions), default=0)
    if schedule.heal_at > last + SECOND:
        yield _with(schedule, heal_at=last + SECOND)
    for unit in (100_000, 10_000, 1_000):
        rounded = tuple(_rounded(action, unit) for action in schedule.actions)
        yield _with(schedule, actions=tuple(sorted(rounded, key=lambda action: action.at)))


def _end(action: Action) -> int:
    return action.at + getattr(action, "lasts", 0)


def _rounded(action: Action, unit: int) -> Action:
    at = -(-action.at // unit) * unit
    return msgspec.structs.replace(action, at=at)


def _fewer_names(schedule: Schedule) -> Iterator[Schedule]:
    """Without those that nothing happens to."""
    meant: dict[str, None] = {}
    for action in schedule.actions:
        meant |= dict.fromkeys(_names(action))
    names = tuple(name for name in schedule.names if name in meant)
    if names and names != schedule.names:
        yield _with(schedule, names=names, habits={name: schedule.habits[name] for name in names})


def _names(action: Action) -> tuple[str, ...]:
    """Whom an action means, by name."""
    if isinstance(action, Cut):
        return (*action.side, *(action.others or ()))
    if isinstance(action, Ring):
        return action.order
    one = getattr(action, "who", ""), getattr(action, "to", None), getattr(action, "other", None)
    return tuple(name for name in one if name)
