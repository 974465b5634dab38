"""Schedules that are slightly simpler than a given one: the candidates of the shrinker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLISECOND, SECOND, Config

from ..schedules.draw import bound_of
from ..schedules.schedule import Habits, Schedule
from ..schedules.steps import ROLES, Action, Cut, Ring, Send, StartProcess
from ..world.network import CALM

SHARES: Final = ("loss", "bursts", "repeat", "reorder", "tail", "late", "corrupt")  # the shares of frames in a weather
WORST: Final = 0.2  # share of frames


class Size(NamedTuple):
    """The size of a schedule for a reader."""

    members: int  # names
    faults: int  # steps that are neither starts nor sends
    steps: int

    def __str__(self) -> str:
        return ", ".join(f"{count} {name if count != 1 else name[:-1]}" for name, count in self._asdict().items())


def size_of(schedule: Schedule) -> Size:
    """The size of `schedule`."""
    return Size(len(schedule.names), sum(map(is_fault, schedule.actions)), len(schedule.actions))


def is_fault(action: Action) -> bool:
    """Whether `action` is a fault or a leave."""
    return not isinstance(action, StartProcess | Send)


def changed(schedule: Schedule, **changes: object) -> Schedule:
    """`schedule` with some fields replaced, and with the bound that its new configuration and weather need."""
    made = msgspec.structs.replace(schedule, **changes)
    made = msgspec.structs.replace(made, others=tuple(name for name in made.others if name in made.names))
    if schedule.bound != bound_of(schedule.config, schedule.weather):
        return made  # the bound was chosen by hand
    return msgspec.structs.replace(made, bound=bound_of(made.config, made.weather))


def without(schedule: Schedule, dropped: Sequence[Action]) -> Schedule:
    """`schedule` without these action objects."""
    gone = {id(action) for action in dropped}
    return changed(schedule, actions=tuple(action for action in schedule.actions if id(action) not in gone))


def without_any(schedule: Schedule) -> Iterator[Schedule]:
    """Remove one name, or half of the steps except starts, a quarter, and so on down to one step, faults first; or
    one kind of weather, or the duties at the end."""
    if schedule.duties:
        yield changed(schedule, duties=False)
    yield from without_one(schedule)
    steps = [action for action in schedule.actions if not isinstance(action, StartProcess)]
    steps.sort(key=is_fault, reverse=True)
    size = len(steps) // 2
    while size > 1:
        yield from (without(schedule, steps[at : at + size]) for at in range(0, len(steps), size))
        size //= 2
    yield from (without(schedule, [action]) for action in [*steps, *schedule.actions])
    yield from calmer(schedule)


# -- less time


def shorter(schedule: Schedule, failed_at: int) -> Iterator[Schedule]:
    """Remove the steps after the failure, and heal earlier."""
    sooner = tuple(action for action in schedule.actions if action.at <= failed_at)
    if len(sooner) < len(schedule.actions) or failed_at < schedule.heal_at:
        yield changed(schedule, actions=sooner, heal_at=min(schedule.heal_at, failed_at + 1))
    last = max((_end(action) for action in schedule.actions), default=0)
    for spare in (0, 100 * MILLISECOND, SECOND):
        if schedule.heal_at > last + spare:
            yield changed(schedule, heal_at=last + spare)


def _end(action: Action) -> int:
    return action.at + getattr(action, "lasts", 0)


def rounder(schedule: Schedule) -> Iterator[Schedule]:
    """Round all times to hundreds of milliseconds, tens, or milliseconds."""
    for unit in (100_000, 10_000, 1_000):
        rounded = [_rounded(action, unit) for action in schedule.actions]
        heal_at = -(-schedule.heal_at // unit) * unit
        yield changed(schedule, actions=tuple(sorted(rounded, key=lambda action: action.at)), heal_at=heal_at)


def _rounded(action: Action, unit: int) -> Action:
    at = -(-action.at // unit) * unit
    return msgspec.structs.replace(action, at=at)


def sooner(schedule: Schedule) -> Iterator[Schedule]:
    """Move all steps to the earliest possible time."""
    first = min((action.at for action in schedule.actions), default=0)
    moved = tuple(msgspec.structs.replace(action, at=action.at - first) for action in schedule.actions)
    meet_at = max(0, schedule.others_meet_at - first)
    yield changed(schedule, actions=moved, heal_at=schedule.heal_at - first, others_meet_at=meet_at)


# -- fewer members


def without_one(schedule: Schedule) -> Iterator[Schedule]:
    """Remove one name; another member sends its messages."""
    if len(schedule.names) <= 2:
        return
    for name in reversed(schedule.names):
        names = tuple(other for other in schedule.names if other != name)
        habits = {other: schedule.habits[other] for other in names}
        actions = tuple(left for action in schedule.actions for left in _left_without(action, name, names[0]))
        yield changed(schedule, names=names, habits=habits, actions=actions)


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


def one_for_another(schedule: Schedule) -> Iterator[Schedule]:
    """Move the steps of one name to another name, and remove the first."""
    if len(schedule.names) <= 2:
        return
    for name in reversed(schedule.names):
        for heir in schedule.names:
            if heir != name:
                yield _instead(schedule, name, heir)


def _instead(schedule: Schedule, name: str, heir: str) -> Schedule:
    names = tuple(other for other in schedule.names if other != name)
    actions: list[Action] = []
    for action in schedule.actions:
        others = {*_names(action)[1:]}
        passes_on = getattr(action, "who", "") == name and not others & {name, heir}
        if passes_on and not isinstance(action, StartProcess):
            actions.append(msgspec.structs.replace(action, who=heir))
        else:
            actions += _left_without(action, name, heir)
    habits = {other: schedule.habits[other] for other in names}
    return changed(schedule, names=names, habits=habits, actions=tuple(actions))


def without_bystanders(schedule: Schedule) -> Iterator[Schedule]:
    """Remove the names that no step mentions."""
    meant: dict[str, None] = {}
    for action in schedule.actions:
        meant |= dict.fromkeys(_names(action))
    names = tuple(name for name in schedule.names if name in meant)
    if names and names != schedule.names:
        yield changed(schedule, names=names, habits={name: schedule.habits[name] for name in names})


def _names(action: Action) -> tuple[str, ...]:
    """The names that an action mentions."""
    if isinstance(action, Cut):
        return (*action.side, *(action.others or ()))
    if isinstance(action, Ring):
        return action.order
    one = getattr(action, "who", ""), getattr(action, "to", None), getattr(action, "other", None)
    return tuple(name for name in one if name)


# -- an ordinary world


def ordinary(schedule: Schedule) -> Iterator[Schedule]:
    """Use calm weather, default habits and default limits: all three at once, then each of them alone."""
    calm = {"weather": CALM, "habits": dict.fromkeys(schedule.names, Habits()), "config": {}, "rejoin": False}
    yield changed(schedule, **calm)
    for name, plain in calm.items():
        yield changed(schedule, **{name: plain})


def calmer(schedule: Schedule) -> Iterator[Schedule]:
    """Remove one kind of weather."""
    weather = schedule.weather
    yield changed(schedule, weather=CALM)
    for name in weather.__struct_fields__:
        calm = getattr(CALM, name)
        if getattr(weather, name) != calm:
            yield changed(schedule, weather=msgspec.structs.replace(weather, **{name: calm}))


def stormier(schedule: Schedule) -> Iterator[Schedule]:
    """Increase the shares of the weather."""
    weather = schedule.weather
    worse = {name: min(WORST, 5 * getattr(weather, name)) for name in SHARES if 0 < getattr(weather, name) < WORST}
    if worse:
        yield changed(schedule, weather=msgspec.structs.replace(weather, **worse))


def plainer(schedule: Schedule) -> Iterator[Schedule]:
    """Reset one limit, or the habits of one process, to the default, or give all processes the same settings."""
    if schedule.others:
        yield changed(schedule, others=(), others_meet_at=0)
    if schedule.rejoin:
        yield changed(schedule, rejoin=False)
    for name in schedule.config:
        config = {key: value for key, value in schedule.config.items() if key != name}
        if _is_possible(config):
            yield changed(schedule, config=config)
    for name, habits in schedule.habits.items():
        if habits != Habits():
            yield changed(schedule, habits=schedule.habits | {name: Habits()})


def _is_possible(config: dict[str, int]) -> bool:
    """Whether these settings are valid together.  With too few heartbeats within a timeout, running members would be
    suspected forever."""
    try:
        made = Config(**config)
    except UsageError:
        return False
    return 2 * made.heartbeat <= made.heartbeat_timeout


# -- weaker steps


def all_sends_small(schedule: Schedule) -> Iterator[Schedule]:
    """Make every message small and single, or at least one of both."""
    for less in ({"count": 1, "size": 20}, {"size": 20}, {"count": 1}):
        actions = tuple(
            msgspec.structs.replace(action, **less) if isinstance(action, Send) else action
            for action in schedule.actions
        )
        yield changed(schedule, actions=actions)


def sends_merged(schedule: Schedule) -> Iterator[Schedule]:
    """Merge two consecutive sends of one application."""
    sends = [action for action in schedule.actions if isinstance(action, Send)]
    for first, second in pairwise(sends):
        if (first.who, first.to) == (second.who, second.to):
            both = msgspec.structs.replace(first, count=first.count + second.count, size=max(first.size, second.size))
            rest = without(schedule, [second]).actions
            yield changed(schedule, actions=tuple(both if action is first else action for action in rest))


def milder(schedule: Schedule, place: int) -> Iterator[Schedule]:
    """Make the step at `place` weaker or shorter, or aim the step at a name instead of a role, or let the step happen
    at once."""
    action = schedule.actions[place]
    for changes in _weaker(action, schedule.names):
        weaker = msgspec.structs.replace(action, **changes)
        yield changed(schedule, actions=(*schedule.actions[:place], weaker, *schedule.actions[place + 1 :]))


def _weaker(action: Action, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for field, plain in _PLAIN.items():
        value = getattr(action, field, plain)
        if value != plain and isinstance(value, type(plain)):  # `leaves` of a full disk is another one
            yield {field: plain}
    for field, least in _AMOUNTS.items():
        amount = getattr(action, field, 0)
        if amount > least:
            yield {field: least}
        if amount // 2 > least:
            yield {field: amount // 2}
    if isinstance(action, Cut) and action.side[0] in ROLES:
        yield from ({"side": (name, *action.side[1:])} for name in names if name not in action.side)
    elif getattr(action, "who", "") in ROLES:
        yield from ({"who": name} for name in names)


_PLAIN: Final[dict[str, object]] = {
    "moment": "now",
    "until": "now",
    "nth": 1,
    "leaves": "all",
    "reaches": 1,
    "way": "both",
}
_AMOUNTS: Final = {  # least values: an amount is set to its least value or halved
    "lasts": 10_000,
    "since": 10_000,
    "times": 1,
    "down": 1_000,
    "up": 1_000,
    "loop_delay": 1_000,
    "count": 1,
    "size": 20,
}
