"""Sides that part and merge: each side makes a view of its own and sends, then all reach each other again.

With `merge-leader` the leader of the merge, or a member that takes part, is hit at a step of the merge.  Faults that
are drawn apart seldom combine this way, because a merge begins long after the cut that caused it.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND

from .fault_plan import FORMATION, FaultPlan
from .steps import WHOEVER, Action, Crash, Cut, Leave, Leaving, Pause, Send, StartProcess

LEADS: Final = ("MergeReq", "MergeCollect", "MergePropose", "MergeInstall")  # sent by the leader of a merge only
TAKES_PART: Final = ("FindRsp", "MergeRsp", "CollectAck", "Accept")
INTERVALS: Final = 6  # of MERGE2: in this time most merges come about
THREE_SIDES: Final = 0.3  # share of the partings
LEAVINGS: Final[tuple[Leaving, ...]] = ("all", "some", "first", "nothing")


def merge(plan: FaultPlan, at: int) -> None:
    """Sides merge.  In half of the plans a process leaves, crashes or starts in just that time."""
    rng, ends = plan.rng, _part(plan, at)
    if rng.random() < 0.5:
        return
    change = ends + plan.soon(4 * plan.interval)
    who = rng.choice(plan.names)
    changes: list[Action] = [StartProcess(at=change, who=who)]
    changes += [Crash(at=change, who=who)] if "crash" in plan.may else []
    changes += [Leave(at=change, who=who)] if "leave" in plan.may else []
    plan.actions.append(rng.choice(changes))
    plan.traffic(change)
    plan.comes_back(change)


def merge_leader(plan: FaultPlan, at: int) -> None:
    """The leader of the merge crashes, stops or is cut off at a step of the merge.  In some plans this happens to
    another member that takes part."""
    rng, ends = plan.rng, _part(plan, at)
    for _ in range(rng.choice((1, 1, 2))):
        moment = rng.choice(LEADS if rng.random() < 0.75 else TAKES_PART)
        nth, kind = rng.choice((1, 1, 1, 2, 3)), rng.random()
        if kind < 0.5:
            leaves, reaches = rng.choice(LEAVINGS), rng.randint(1, 3)
            plan.actions.append(Crash(at=ends, who=WHOEVER, moment=moment, nth=nth, leaves=leaves, reaches=reaches))
        elif kind < 0.75:
            plan.actions.append(Pause(at=ends, who=WHOEVER, lasts=plan.span(), moment=moment, nth=nth))
        else:
            plan.actions.append(Cut(at=ends, side=(WHOEVER,), lasts=plan.span(), moment=moment, nth=nth))
    plan.traffic(ends + plan.soon(4 * plan.interval))
    plan.comes_back(ends + 2 * plan.interval)


def _part(plan: FaultPlan, at: int) -> int:
    """Cut the network into two or three sides, all of which send.  Returns when the cuts end."""
    rng, begins = plan.rng, min(at, FORMATION + plan.lasts // 2)
    lasts = plan.patience + rng.randrange(200, 1_000) * MILLISECOND
    ends = begins + lasts
    names = rng.sample(plan.names, len(plan.names))
    first = rng.randint(1, len(names) - 1)
    plan.actions.append(Cut(at=begins, side=tuple(names[:first]), lasts=lasts))
    if len(names) - first > 1 and rng.random() < THREE_SIDES:
        plan.actions.append(Cut(at=begins, side=(names[-1],), lasts=lasts))
    for _ in range(rng.randint(3, 10)):
        sent, count = rng.randrange(begins, ends + SECOND), rng.choice((1, 3, 10))
        plan.actions.append(Send(at=sent, who=rng.choice(names), count=count, size=30))
    plan.ends = max(plan.ends, ends + INTERVALS * plan.interval)
    return ends
