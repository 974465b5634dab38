"""Faults of applications and of discovery (world/surroundings.py plays them), and of disks.

A second process starts under a name that is in use, or with another profile.  An application closes a connection.  The
directory answers late, incompletely or wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND

from .fault_plan import FaultPlan
from .steps import COORDINATOR, Action, Beside, CloseConnection, Cut, DiskFull, How, Leave, Mislead, Send, StartProcess

WRONG: Final[tuple[How, ...]] = ("late", "former", "some")


def twin(plan: FaultPlan, at: int) -> None:
    """A second process starts under a name, sometimes when the first process was just cut off or is about to end."""
    rng = plan.rng
    who = rng.choice(plan.names)
    if "isolate" in plan.may and rng.random() < 0.3:
        plan.actions.append(Cut(at=max(1, at - plan.soon(plan.patience)), side=(who,), lasts=plan.span()))
    lasts = rng.choice((50, 500, 3_000)) * MILLISECOND
    plan.actions.append(Beside(at=at, who=who, lasts=lasts))


def stranger(plan: FaultPlan, at: int) -> None:
    """A process with another profile asks to join, often while other processes join."""
    if plan.rng.random() < 0.5:
        plan.actions.append(StartProcess(at=at + plan.soon(), who=plan.rng.choice(plan.names)))
    plan.actions.append(Beside(at=at, who=plan.rng.choice(plan.names), lasts=SECOND, stranger=True))


def mislead(plan: FaultPlan, at: int) -> None:
    """A process joins while the directory answers late, names ended members, or omits some members."""
    rng = plan.rng
    lasts = rng.choice((100, 500, 2_000)) * MILLISECOND
    plan.actions.append(Mislead(at=at, how=rng.choice(WRONG), lasts=lasts))
    plan.joins(at + plan.soon())


def forget(plan: FaultPlan, at: int) -> None:
    """A member sends messages to another member, closes the connection while the messages are in transit, and sends
    again."""
    rng = plan.rng
    one, other = rng.sample(plan.names, 2)
    plan.actions += [
        Send(at=max(1, at - plan.soon()), who=one, count=rng.choice((1, 3, 40)), size=20, to=other),
        CloseConnection(at=at, who=one, other=other),
        Send(at=at + plan.soon(), who=one, count=rng.choice((1, 3, 40)), size=20, to=other),
    ]


def full_disks(rng: Random, names: Sequence[str], begin: int, end: int, *, rare: bool) -> list[Action]:
    """In some schedules, up to three journals cannot be written for a time; some of their members leave and come back.

    These faults have their own random numbers, so that they change no other fault of the schedule.
    """
    if rng.random() >= (0.3 if rare else 0.9):
        return []
    steps: list[Action] = []
    for _ in range(rng.randint(1, 3)):
        at, lasts = rng.randrange(0, end), rng.choice((10, 300, 2_000, 60_000)) * MILLISECOND
        leaves = rng.random() < 0.4
        steps.append(DiskFull(at=at, who=rng.choice((*names, COORDINATOR)), lasts=lasts, leaves=leaves))
        if leaves:
            back = at + rng.choice((500, 2_000)) * MILLISECOND
            steps += [StartProcess(at=min(back, max(begin, end - 1)), who=name) for name in names]
    return steps


def leave_alone(plan: FaultPlan, at: int) -> None:
    """A member that is cut off leaves, after it has sent messages to another member."""
    rng = plan.rng
    who = COORDINATOR if rng.random() < 0.3 else rng.choice(plan.names)
    other = rng.choice(plan.names)
    plan.actions += [
        Cut(at=at, side=(who,), lasts=plan.patience + plan.span()),
        Send(at=at + plan.soon(), who=who if who != COORDINATOR else other, count=3, size=20, to=other),
        Leave(at=at + plan.soon(plan.patience), who=who),
    ]
    plan.comes_back(at)
