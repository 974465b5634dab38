"""A view change that is torn apart: some do not see others, and what was decided comes while another one is under way.

Drawn one by one, its parts seldom come together: of a thousand schedules without it, in one a member that was bound to
a leader got the view of an earlier one.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.limits import MILLISECOND

from .fault_plan import FaultPlan
from .steps import COORDINATOR, SUCCESSOR, WHOEVER, Clog, Crash, Cut, Leave, Send

STEPS: Final = ("Collect", "CollectAck", "Propose", "Accept", "Install")
LATE: Final = (2, 1, 1, 1, 4)  # how often each is said late
UNTIL: Final = (1, 1, 1, 4, 1)  # and comes when another one is taken: mostly when all is fetched for the next view


def tear(plan: FaultPlan, at: int) -> None:
    """What was sent last reaches one only, whom the leader of the next change then does not see; and what is said at a
    step of the change is late."""
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
    """The coordinator leaves, and its successor is the last to hear of it: what the others send then comes from a view
    that it does not know."""
    rng, lasts = plan.rng, plan.rng.randrange(20, 300) * MILLISECOND
    plan.actions.append(Leave(at=at + 1, who=COORDINATOR))
    hears_late(plan, at, lasts)
    for _ in range(rng.randint(5, 20)):
        sent, count = at + 1 + plan.soon(lasts + 50 * MILLISECOND), rng.choice((1, 3, 10))
        plan.actions.append(Send(at=sent, who=rng.choice(plan.names), count=count, size=60))
    plan.comes_back(at + 1)


def hears_late(plan: FaultPlan, at: int, lasts: int) -> None:
    """Somebody, mostly the next coordinator, hears `lasts` later than the others how a view ends."""
    other = SUCCESSOR if plan.rng.random() < 0.8 else plan.rng.choice(plan.names)
    plan.actions.append(Clog(at=at, who=COORDINATOR, other=other, lasts=lasts, way="out", moment="Install"))


def _say_late(plan: FaultPlan, at: int) -> None:
    """What somebody says at a step comes to all others, or to each, when somebody takes another step."""
    rng = plan.rng
    moment, nth = rng.choices(STEPS, LATE)[0], rng.choice((1, 1, 2))
    for other in plan.some(1) if rng.random() < 0.3 else (None,):
        lasts, until = 2 * plan.span(), rng.choices(STEPS, UNTIL)[0]
        late = Clog(at=at, who=WHOEVER, other=other, lasts=lasts, way="out", moment=moment, nth=nth, until=until)
        plan.actions.append(late)


def last_change(plan: FaultPlan, heal_at: int) -> None:
    """The coordinator leaves just before everything heals, with much on its way; then nothing happens any more, so
    that what is lost now is not made good by a later view."""
    at = heal_at - plan.soon(300 * MILLISECOND) - 1
    plan.actions = [step for step in plan.actions if step.at < at]
    for _ in range(plan.rng.randint(2, 5)):
        sent = at + plan.rng.randrange(-30, 60) * MILLISECOND
        plan.actions += [Send(at=sent, who=name, count=5, size=30) for name in plan.names]
    plan.actions.append(Leave(at=at, who=COORDINATOR))
    if "ahead" in plan.may and plan.rng.random() < 0.7:
        hears_late(plan, at - 1, heal_at - at)
