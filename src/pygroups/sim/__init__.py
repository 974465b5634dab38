"""The deterministic world in which the same layers run, with faults and running checks.

For tests of applications and of own layers: `scenario` plays a situation in a few lines, `simulate` many schedules that
are drawn from seeds; both judge the promises of the profile all along, and own promises (`Check`) with them.  Nothing
here knows sockets, threads or the clock.  Guides: docs/guides/scenarios.md and docs/guides/simulator.md.
"""

from __future__ import annotations

from .promises.broken import Broken, Witness
from .promises.facts import Check, Delivery, Rest, UnicastDelivery, Viewed
from .runner import Outcome, Totals
from .scenario_apps import Acting, Actor, Message, messages_of
from .scenario_frames import Hit, Rule
from .scenario_member import Player
from .scenarios import Group, scenario
from .schedule import (
    COORDINATOR,
    Break,
    Crash,
    Cut,
    Gather,
    Habits,
    Leave,
    Pause,
    Schedule,
    Send,
    Start,
    Weather,
)
from .simulations import (
    Simulated,
    play,
    read_schedule,
    schedule_of,
    shrunk,
    simulate,
    write_schedule,
)

__all__ = [
    "COORDINATOR",
    "Acting",
    "Actor",
    "Break",
    "Broken",
    "Check",
    "Crash",
    "Cut",
    "Delivery",
    "Gather",
    "Group",
    "Habits",
    "Hit",
    "Leave",
    "Message",
    "Outcome",
    "Pause",
    "Player",
    "Rest",
    "Rule",
    "Schedule",
    "Send",
    "Simulated",
    "Start",
    "Totals",
    "UnicastDelivery",
    "Viewed",
    "Weather",
    "Witness",
    "messages_of",
    "play",
    "read_schedule",
    "scenario",
    "schedule_of",
    "shrunk",
    "simulate",
    "write_schedule",
]
