"""A schedule that breaks a promise made smaller: what can be taken away without losing the failure goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND, Config

from .network import CALM
from .promises.broken import Witness
from .schedule import COORDINATOR, FOLLOWER, Action, Cut, Habits, Ring, Schedule, Send

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
            self._each(_without_one)
            self._each(_calmer)
            self._drop_actions()
            self._each(_all_sends_small)
            self._weaken()
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

    def _weaken(self) -> None:
        """Each of the actions, as far as it goes in one step of each kind."""
        for place in range(len(self.best.actions)):
            for changes in list(_milder(self.best.actions[place], self.best.names)):
                actions = list(self.best.actions)
                if ("who" in changes or "side" in changes) and not _role(actions[place]):
                    continue  # one of the names was enough
                actions[place] = msgspec.structs.replace(actions[place], **changes)
                self._try(_with(self.best, actions=tuple(actions)))

    def _each(self, simpler: Callable[[Schedule], Iterator[Schedule]]) -> None:
        """Everything that is `simpler`, until nothing of it still fails."""
        while any(self._try(candidate) for candidate in simpler(self.best)):
            pass


def _with(schedule: Schedule, **changes: object) -> Schedule:
    return msgspec.structs.replace(schedule, **changes)


def _calmer(schedule: Schedule) -> Iterator[Schedule]:
    weather = schedule.weather
    yield _with(schedule, weather=CALM)
    for name in weather.__struct_fields__:
        calm = getattr(CALM, name)
        if getattr(weather, name) != calm:
            yield _with(schedule, weather=msgspec.structs.replace(weather, **{name: calm}))


def _plainer(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.rejoin:
        yield _with(schedule, rejoin=False)
    for name in schedule.config:
        config = {key: value for key, value in schedule.config.items() if key != name}
        if _is_possible(config):
            yield _with(schedule, config=config)
    for name, habits in schedule.habits.items():
        if habits != Habits():
            yield _with(schedule, habits=schedule.habits | {name: Habits()})


def _is_possible(config: dict[str, int]) -> bool:
    """Whether these go together; with too few heartbeats in a time-out the living would look dead for ever."""
    try:
        made = Config(**config)
    except UsageError:
        return False
    return 2 * made.heartbeat <= made.heartbeat_timeout


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


def _all_sends_small(schedule: Schedule) -> Iterator[Schedule]:
    """Every message is a small one, and alone."""
    yield _with(schedule, actions=tuple(_small(action) for action in schedule.actions))


def _small(action: Action) -> Action:
    return msgspec.structs.replace(action, count=1, size=20) if isinstance(action, Send) else action


def _milder(action: Action, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Weaker, shorter, aimed at a name instead of a role, or at once instead of at a moment."""
    for field, plain in _PLAIN.items():
        if getattr(action, field, plain) != plain:
            yield {field: plain}
    for field, least in _AMOUNTS.items():
        amount = getattr(action, field, 0)
        if amount > least:
            yield {field: least}
        if amount // 2 > least:
            yield {field: amount // 2}
    if not _role(action):
        return
    if isinstance(action, Cut):
        yield from ({"side": (name, *action.side[1:])} for name in names if name not in action.side)
    else:
        yield from ({"who": name} for name in names)


def _role(action: Action) -> bool:
    """Whether it is aimed at whoever has a role."""
    who = action.side[0] if isinstance(action, Cut) else getattr(action, "who", "")
    return who in (COORDINATOR, FOLLOWER)


_PLAIN: Final[dict[str, object]] = {"moment": "now", "nth": 1, "leaves": "all", "reaches": 1, "way": "both"}
_AMOUNTS: Final = {  # made as small as this, or else half of what they are
    "lasts": 10_000,
    "since": 10_000,
    "times": 1,
    "down": 1_000,
    "up": 1_000,
    "loop_delay": 1_000,
    "count": 1,
    "size": 20,
}


def _without_one(schedule: Schedule) -> Iterator[Schedule]:
    """Without one of the names; what it would send somebody else sends."""
    if len(schedule.names) <= 2:
        return
    for name in reversed(schedule.names):
        names = tuple(other for other in schedule.names if other != name)
        habits = {other: schedule.habits[other] for other in names}
        actions = tuple(left for action in schedule.actions for left in _left_without(action, name, names[0]))
        yield _with(schedule, names=names, habits=habits, actions=actions)


def _left_without(action: Action, name: str, heir: str) -> list[Action]:
    if name not in _names(action):
        return [action]
    if isinstance(action, Send) and action.to != name:
        return [msgspec.structs.replace(action, who=heir)]
    if isinstance(action, Ring):
        return [msgspec.structs.replace(action, order=tuple(other for other in action.order if other != name))]
    if isinstance(action, Cut):
        side = tuple(other for other in action.side if other != name)
        others = None if action.others is None else tuple(other for other in action.others if other != name)
        if side and others != ():
            return [msgspec.structs.replace(action, side=side, others=others)]
    return []


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
