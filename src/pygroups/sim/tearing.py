"""A view change that is torn apart: some do not see others, and what was decided comes while another one is under way.

Drawn one by one, its parts seldom come together: of a thousand schedules without it, in one a member that was bound to
a leader got the view of an earlier one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .schedule import COORDINATOR, WHOEVER, Clog, Crash, Cut, Send

if TYPE_CHECKING:
    from .plan import Plan

STEPS: Final = ("Collect", "CollectAck", "Propose", "Accept", "Install")
LATE: Final = (2, 1, 1, 1, 4)  # how often each is said late
UNTIL: Final = (1, 1, 1, 4, 1)  # and comes when another one is taken: mostly when all is fetched for the next view


def tear(plan: Plan, at: int) -> None:
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


def _say_late(plan: Plan, at: int) -> None:
    """What somebody says at a step comes to all others, or to each, when somebody takes another step."""
    rng = plan.rng
    moment, nth = rng.choices(STEPS, LATE)[0], rng.choice((1, 1, 2))
    for other in plan.some(1) if rng.random() < 0.3 else (None,):
        lasts, until = 2 * plan.span(), rng.choices(STEPS, UNTIL)[0]
        late = Clog(at=at, who=WHOEVER, other=other, lasts=lasts, way="out", moment=moment, nth=nth, until=until)
        plan.actions.append(late)
