"""A slow member in a group with a policy: its application reads nothing, or its process is stopped, for longer than the
policy allows, or a little less.  Other members send more than a window meanwhile.
"""

from __future__ import annotations

from random import Random
from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND

from .fault_plan import FORMATION, FaultPlan
from .steps import COORDINATOR, Pause, Send, Unread

FAULT: Final = "expel"
SHARE: Final = 0.04  # share of the schedules with this fault, among those of all faults
CALM: Final = 0.5  # share of those without a fault that makes a running process look dead: there each wish is judged
STOPPED: Final = 0.25  # share of those in which a process is stopped; the others have an application that does not read
SENT: Final = 200  # size of a payload
LONGER: Final = 3 * SECOND  # time after `slow_exclude` in which the group excludes the member


def config_of(rng: Random) -> dict[str, int]:
    """Draw the policy, and windows that fill up soon."""
    window = rng.choice((4, 8)) << 10
    policy = {"slow_exclude": rng.choice((2, 3, 5)) * SECOND}
    return policy | {"run_bytes": 1 << 10, "window": window, "stable_bytes": 1 << 10}


def timeouts_of(rng: Random) -> dict[str, int]:
    """Draw timeouts with which the policy excludes a stopped process before its heartbeats are missed, or nothing."""
    if rng.random() >= STOPPED:
        return {}
    times = {"slow_exclude": 2 * SECOND, "heartbeat": SECOND, "heartbeat_timeout": 6 * SECOND}
    return times | {"verify_timeout": 200 * MILLISECOND}


def add(rng: Random, plan: FaultPlan, config: dict[str, int]) -> int:
    """Add the slow member and the messages of the others; returns when it is over."""
    after, at = config["slow_exclude"], FORMATION + rng.randrange(0, plan.lasts)
    slow = COORDINATOR if rng.random() < 0.4 else rng.choice(plan.names)
    lasts = after + LONGER if rng.random() < 0.7 else int(after * rng.uniform(0.3, 0.8))
    if config.get("heartbeat_timeout", 0) > after + LONGER:  # see timeouts_of()
        plan.actions.append(Pause(at=at, who=slow, lasts=lasts))
    else:
        plan.actions.append(Unread(at=at, who=slow, lasts=lasts))
    count = 2 * config["window"] // SENT
    for who in rng.sample(plan.names, min(2, len(plan.names))):
        plan.actions.append(Send(at=at + plan.soon(500 * MILLISECOND), who=who, count=count, size=SENT))
    return at + lasts + SECOND
