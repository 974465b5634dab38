"""A view change that is torn apart: some members do not see others, and a decision arrives during the next view change.

Separately drawn faults seldom combine this way.  In a thousand schedules without this fault, one had a member that was
bound to a leader and received the view of an earlier leader.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.limits import MILLISECOND

from .fault_plan import FaultPlan
from .steps import COORDINATOR, SUCCESSOR, WHOEVER, Clog, Crash, Cut, Leave, Send

STEPS: Final = ("Collect", "CollectAck", "Propose", "Accept", "Install")
LATE: Final = (2, 1, 1, 1, 4)  # weight of each head to be sent late
UNTIL: Final = (1, 1, 1, 4, 1)  # weight of each head to release the late one: mostly Accept of the next view


def tear(plan: FaultPlan, at: int) -> None:
    """The last message reaches one member only, and the leader of the following view change does not see this
    member.  The messages of one step of the change are late."""
    rng, one = plan.rng, plan.rng.choice(plan.names)
    gone = COORDINATOR if rng.random() < 0.6 else rng.choice(plan.names)
    sender = rng.choice(plan.names) if gone == COORDINATOR else gone
    deaf = tuple(name for name in plan.names if name != one)
    change = at + 1 + plan.soon()
    apart = Cut(at=change, side=(gone,), lasts=plan.patience + plan.span())
    plan.actions += [
        Cut(at=at, side=(gone,), others=deaf, lasts=plan.patience, way="out"),
        Send(at=at, who=sender, count=1, size=20),
        Crash(at=change, who=gone) if "crash" in plan.may and rng.random() < 0.5 else apart,
        Clog(at=change, who=one, lasts=2 * plan.span(), way="out", until=rng.choice(STEPS)),
        Cut(at=at, side=(WHOEVER,), others=(one,), lasts=2 * plan.span(), moment="Ready"),
    ]
    for _ in range(rng.choice((1, 2, 3))):
        _say_late(plan, at)
    plan.comes_back(change)


def ahead(plan: FaultPlan, at: int) -> None:
    """The coordinator leaves, and its successor is the last member that learns this.  The other members then send in a
    view that the successor does not know."""
    rng, lasts = plan.rng, plan.rng.randrange(20, 300) * MILLISECOND
    plan.actions.append(Leave(at=at + 1, who=COORDINATOR))
    hears_late(plan, at, lasts)
    for _ in range(rng.randint(5, 20)):
        sent, count = at + 1 + plan.soon(lasts + 50 * MILLISECOND), rng.choice((1, 3, 10))
        plan.actions.append(Send(at=sent, who=rng.choice(plan.names), count=count, size=60))
    plan.comes_back(at + 1)


def hears_late(plan: FaultPlan, at: int, lasts: int) -> None:
    """A member, mostly the next coordinator, receives the next view `lasts` later than the other members."""
    other = SUCCESSOR if plan.rng.random() < 0.8 else plan.rng.choice(plan.names)
    plan.actions.append(Clog(at=at, who=COORDINATOR, other=other, lasts=lasts, way="out", moment="Install"))


def _say_late(plan: FaultPlan, at: int) -> None:
    """The messages of one step reach all other members, or each of some members, only when a process takes another
    step."""
    rng = plan.rng
    moment, nth = rng.choices(STEPS, LATE)[0], rng.choice((1, 1, 2))
    for other in plan.some(1) if rng.random() < 0.3 else (None,):
        lasts, until = 2 * plan.span(), rng.choices(STEPS, UNTIL)[0]
        late = Clog(at=at, who=WHOEVER, other=other, lasts=lasts, way="out", moment=moment, nth=nth, until=until)
        plan.actions.append(late)


def last_change(plan: FaultPlan, heal_at: int) -> None:
    """The coordinator leaves just before all faults heal, with many messages in transit.  No step follows, so no
    later view repairs a loss of this change."""
    at = heal_at - plan.soon(300 * MILLISECOND) - 1
    plan.actions = [step for step in plan.actions if step.at < at]
    for _ in range(plan.rng.randint(2, 5)):
        sent = at + plan.rng.randrange(-30, 60) * MILLISECOND
        plan.actions += [Send(at=sent, who=name, count=5, size=30) for name in plan.names]
    plan.actions.append(Leave(at=at, who=COORDINATOR))
    if "ahead" in plan.may and plan.rng.random() < 0.7:
        hears_late(plan, at - 1, heal_at - at)
