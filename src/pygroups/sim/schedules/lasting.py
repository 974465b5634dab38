"""Faults that last after all others have healed.  Promises are judged while these faults last.

Most of these faults begin when all members are together and no other fault is active, so that their effects are seen
alone.  Then a process crashes, leaves or joins, so that the group must agree on a new view.  Afterwards nothing changes
for two bounds of `progress` and half of one, because `few-views` judges the views of the second bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from pygroups.core.limits import MILLISECOND, SECOND, Config

from ..promises.progress import bound_of, bound_with_merges
from .fault_plan import FaultPlan
from .steps import COORDINATOR, FOLLOWER, Crash, Cut, Far, Gather, Leave, Send, StartProcess, Way

TOGETHER: Final = 2 * SECOND  # time until all separated processes are in one view
BUSY: Final = 1_500 * MILLISECOND  # time in which members send, crash, leave and join during the lasting fault
FOR_GOOD: Final = 0.3  # share of the schedules with a lasting fault that never heals


class Stay(NamedTuple):
    """The duration of the lasting faults after all others have healed, and whether they never heal."""

    lasts: int
    for_good: bool


def add(plan: FaultPlan, faults: tuple[str, ...], heal_at: int, config: Config, *, merges: bool) -> Stay:
    """Add lasting faults that begin after `heal_at`, or before it, and the steps that happen during them.  `merges`:
    the profile merges views, which takes its time."""
    rng = plan.rng
    begins = heal_at + TOGETHER + rng.randrange(0, 200 * MILLISECOND)
    plan.actions.append(Gather(at=heal_at + 1 + plan.soon()))
    plan.actions += [StartProcess(at=heal_at + 300 * MILLISECOND, who=name) for name in plan.names]
    farthest = 0
    for fault in rng.sample(faults, min(len(faults), rng.choice((1, 1, 2)))):
        at = begins if rng.random() < 0.8 else rng.randrange(1, heal_at)
        farthest = max(farthest, _DRAWN[fault](plan, at, config))
    _happenings(plan, begins)
    last = max(step.at for step in plan.actions if not isinstance(step, Send))
    bound = (bound_with_merges if merges else bound_of)(config, 2 * farthest)
    over = last + bound * 5 // 2 + 2 * SECOND
    return Stay(over - heal_at, rng.random() < FOR_GOOD)


def _happenings(plan: FaultPlan, begins: int) -> None:
    """All members send, before and after a step that needs a new view."""
    rng, names = plan.rng, plan.names
    for _ in range(rng.randint(5, 25)):
        at = begins + rng.randrange(-300 * MILLISECOND, BUSY)
        plan.actions.append(Send(at=at, who=rng.choice(names), count=rng.choice((1, 3, 10)), size=30))
    gone = rng.choice(names)
    change = begins + 1 + plan.soon(BUSY // 2)
    kind = rng.random()
    if kind < 0.35:
        plan.actions.append(Crash(at=change, who=rng.choice((gone, COORDINATOR, FOLLOWER))))
    elif kind < 0.5:
        plan.actions.append(Leave(at=change, who=rng.choice((gone, COORDINATOR, FOLLOWER))))
    elif kind < 0.9:
        plan.actions.append(Crash(at=begins - SECOND, who=gone))
        plan.actions.append(StartProcess(at=change, who=gone))


def _oneway(plan: FaultPlan, at: int, config: Config) -> int:
    rng, way = plan.rng, _way(plan)
    one, other = rng.sample(plan.names, 2)
    who = COORDINATOR if rng.random() < 0.5 else one
    others = (other,) if rng.random() < 0.7 else None
    plan.actions.append(Cut(at=at, side=(who,), others=others, lasts=0, way=way, stays=True))
    return 0


def _way(plan: FaultPlan) -> Way:
    return "out" if plan.rng.random() < 0.5 else "in"


def _pair(plan: FaultPlan, at: int, config: Config) -> int:
    one, other = plan.rng.sample(plan.names, 2)
    plan.actions.append(Cut(at=at, side=(one,), others=(other,), lasts=0, stays=True))
    return 0


def _apart(plan: FaultPlan, at: int, config: Config) -> int:
    rng = plan.rng
    side = rng.sample(plan.names, rng.randint(1, max(1, len(plan.names) // 2)))
    plan.actions.append(Cut(at=at, side=tuple(side), lasts=0, stays=True))
    return 0


def _far(plan: FaultPlan, at: int, config: Config) -> int:
    rng, waits = plan.rng, config.flush_timeout
    by = int(rng.uniform(0.4, 1.2) * waits)
    plan.actions.append(Far(at=at, who=rng.choice(plan.names), by=by, lasts=0, stays=True))
    return by


def _unreached(plan: FaultPlan, at: int, config: Config) -> int:
    """A process that joins cannot be reached; when that has lasted for a while, another process joins."""
    joiner, later = plan.rng.sample(plan.names, 2)
    patience = plan.patience + config.ready_timeout + config.flush_timeout
    plan.actions += [
        Crash(at=max(1, at - SECOND), who=joiner),
        Cut(at=at, side=(joiner,), lasts=0, way="in", stays=True),
        StartProcess(at=at + 1, who=joiner),
        Crash(at=at + 2, who=later),
        StartProcess(at=at + 3 * SECOND + 2 * patience + plan.soon(SECOND), who=later),
    ]
    return 0


def refused(plan: FaultPlan, at: int, lasts: int) -> None:
    """The connection of one process to another is reset, and new connections are refused for a while."""
    rng = plan.rng
    one, other = rng.sample(plan.names, 2)
    whom = COORDINATOR if rng.random() < 0.3 else one
    way: Way = "in" if whom == COORDINATOR else "out"
    plan.actions.append(Cut(at=at, side=(whom,), others=(other,), lasts=lasts, way=way, refused=True))


def _refused(plan: FaultPlan, at: int, config: Config) -> int:
    refused(plan, at, plan.rng.choice((20 * MILLISECOND, SECOND, plan.patience, 600 * SECOND)))
    return 0


_DRAWN: Final[dict[str, Callable[[FaultPlan, int, Config], int]]] = {
    "stay-oneway": _oneway,
    "stay-pair": _pair,
    "stay-apart": _apart,
    "far": _far,
    "unreached": _unreached,
    "refused": _refused,
}
STAYING: Final = tuple(_DRAWN)
