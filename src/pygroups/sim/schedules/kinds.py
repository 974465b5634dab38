"""The kinds of faults: one function for each kind adds a fault of this kind to a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND

from . import lasting, parting, surroundings
from .fault_plan import FaultPlan
from .steps import (
    COORDINATOR,
    Break,
    Clog,
    Crash,
    Cut,
    Flap,
    Jump,
    Leave,
    Leaving,
    Pause,
    Replay,
    Ring,
    SlowReader,
    StartProcess,
    Unread,
    Way,
)
from .tearing import ahead, tear

LEAVINGS: Final[tuple[Leaving, ...]] = ("all", "some", "first", "nothing")
WAYS: Final[tuple[Way, ...]] = ("both", "both", "out", "in")


def add(plan: FaultPlan, fault: str) -> None:
    """Add one fault of this kind to the plan, often with messages sent around the same time."""
    at = plan.when()
    _DRAWN[fault](plan, at)
    if plan.rng.random() < 0.7:
        plan.traffic(at)


# -- processes


def _crash(plan: FaultPlan, at: int) -> None:
    """Add a crash.  Of the crashes that let no frame leave, half happen before the journal is written; the time
    decides."""
    aim, leaves = plan.aim(at), plan.rng.choice(LEAVINGS)
    if leaves == "nothing" and aim.moment != "now" and at % 2:
        leaves = "unwritten"
    reaches = plan.rng.randint(1, 3) if leaves == "first" else 1
    plan.actions.append(Crash(at=aim.at, who=aim.who, moment=aim.moment, nth=aim.nth, leaves=leaves, reaches=reaches))
    plan.comes_back(at)


def _restart(plan: FaultPlan, at: int) -> None:
    who = plan.rng.choice(plan.names)
    plan.actions += [Crash(at=at, who=who), StartProcess(at=at + 1 + plan.soon(plan.rng.choice((10, 20_000))), who=who)]


def _pause(plan: FaultPlan, at: int) -> None:
    aim = plan.aim(at)
    plan.actions.append(Pause(at=aim.at, who=aim.who, lasts=plan.span(), moment=aim.moment, nth=aim.nth))


def _slow(plan: FaultPlan, at: int) -> None:
    delay = plan.rng.choice((5 * MILLISECOND, 20 * MILLISECOND, plan.patience // 4, plan.patience))
    plan.actions.append(SlowReader(at=at, who=plan.who(), lasts=2 * plan.span(), loop_delay=delay))


def _full(plan: FaultPlan, at: int) -> None:
    lasts = plan.rng.choice((200, 1_000, 3_000)) * MILLISECOND
    plan.actions.append(Unread(at=at, who=plan.who(), lasts=lasts))


def _clock(plan: FaultPlan, at: int) -> None:
    by = plan.rng.choice((MILLISECOND, SECOND, 3_600 * SECOND, 86_400 * SECOND)) * plan.rng.choice((-1, 1))
    plan.actions.append(Jump(at=at, who=plan.who(), by=by))


# -- the group


def _leave(plan: FaultPlan, at: int) -> None:
    plan.actions.append(Leave(at=at, who=plan.who()))
    plan.comes_back(at)


def _join(plan: FaultPlan, at: int) -> None:
    """Start a process under a drawn name; nothing happens if one runs under this name."""
    plan.actions.append(StartProcess(at=at, who=plan.rng.choice(plan.names)))


def _join_storm(plan: FaultPlan, at: int) -> None:
    """Several members crash or leave, and all of them start again at about the same time."""
    back = at + plan.rng.randrange(50, 1_500) * MILLISECOND
    for who in plan.some(2)[: len(plan.names) - 1]:
        plan.actions.append(Crash(at=at, who=who) if "crash" in plan.may else Leave(at=at, who=who))
    plan.actions += [StartProcess(at=back + plan.soon(5 * MILLISECOND), who=name) for name in plan.names]


def _leave_storm(plan: FaultPlan, at: int) -> None:
    plan.actions += [Leave(at=at + plan.soon(), who=who) for who in plan.some(2)]
    back = at + plan.rng.randrange(100, 1_500) * MILLISECOND
    plan.actions += [StartProcess(at=back, who=name) for name in plan.names]


def _handover(plan: FaultPlan, at: int) -> None:
    plan.joins(at)
    change = at + plan.soon(60 * MILLISECOND)
    crashes = "crash" in plan.may and plan.rng.random() < 0.3
    plan.actions.append(Crash(at=change, who=COORDINATOR) if crashes else Leave(at=change, who=COORDINATOR))
    plan.comes_back(change)


# -- the network


def _isolate(plan: FaultPlan, at: int) -> None:
    aim = plan.aim(at)
    plan.actions.append(Cut(at=aim.at, side=(aim.who,), lasts=plan.span(), moment=aim.moment, nth=aim.nth))


def _halves(plan: FaultPlan, at: int) -> None:
    side = plan.rng.sample(plan.names, plan.rng.randint(1, len(plan.names) - 1))
    plan.actions.append(Cut(at=at, side=tuple(side), lasts=plan.span()))


def _ring(plan: FaultPlan, at: int) -> None:
    order = tuple(plan.rng.sample(plan.names, len(plan.names)))
    plan.actions.append(Ring(at=at, order=order, lasts=plan.span()))


def _oneway(plan: FaultPlan, at: int) -> None:
    way: Way = "out" if plan.rng.random() < 0.5 else "in"
    plan.actions.append(Cut(at=at, side=(plan.who(),), lasts=plan.span(), way=way))


def _pair(plan: FaultPlan, at: int) -> None:
    one, other = plan.rng.sample(plan.names, 2)
    way: Way = "both" if plan.rng.random() < 0.5 else "out"
    plan.actions.append(Cut(at=at, side=(one,), others=(other,), lasts=plan.span(), way=way))


def _flap(plan: FaultPlan, at: int) -> None:
    one, other = plan.rng.sample(plan.names, 2)
    down, up = (int(plan.rng.uniform(0.02, 1.2) * plan.patience) for _ in range(2))
    times = plan.rng.randint(2, 8)
    alone = plan.rng.random() < 0.5
    plan.actions.append(Flap(at=at, who=one, other=other if alone else None, times=times, down=down, up=up))


def _clog(plan: FaultPlan, at: int) -> None:
    one, other = plan.rng.sample(plan.names, 2)
    who, to = (one, other) if plan.rng.random() < 0.5 else (plan.who(), None)
    plan.actions.append(Clog(at=at, who=who, other=to, lasts=plan.span(), way=plan.rng.choice(WAYS)))


def _replay(plan: FaultPlan, at: int) -> None:
    one, other = plan.rng.sample(plan.names, 2)
    plan.actions.append(Replay(at=at, who=one, other=other, since=plan.rng.choice((500, 2_000, 5_000)) * MILLISECOND))


def _breaks(plan: FaultPlan, at: int) -> None:
    one, other = plan.rng.sample(plan.names, 2)
    plan.actions.append(Break(at=at, who=one, other=other))


def _refused(plan: FaultPlan, at: int) -> None:
    lasting.refused(plan, at, plan.rng.choice((20 * MILLISECOND, SECOND, plan.span())))


_DRAWN: Final[dict[str, Callable[[FaultPlan, int], None]]] = {
    "crash": _crash,
    "restart": _restart,
    "isolate": _isolate,
    "pause": _pause,
    "halves": _halves,
    "ring": _ring,
    "oneway": _oneway,
    "pair": _pair,
    "tear": tear,
    "ahead": ahead,
    "merge": parting.merge,
    "merge-leader": parting.merge_leader,
    "flap": _flap,
    "clog": _clog,
    "replay": _replay,
    "break": _breaks,
    "refused": _refused,
    "leave": _leave,
    "join": _join,
    "join-storm": _join_storm,
    "leave-storm": _leave_storm,
    "handover": _handover,
    "slow": _slow,
    "full": _full,
    "clock": _clock,
    "forget": surroundings.forget,
    "alone": surroundings.leave_alone,
    "twin": surroundings.twin,
    "stranger": surroundings.stranger,
    "directory": surroundings.mislead,
}
