"""The deterministic world in which the same layers run, with faults and running checks.

This package tests applications and new layers.  `scenario` plays a situation in a few lines, and `simulate` plays many
schedules that are drawn from seeds.  Both check the promises of the profile during the whole run, together with checks
of the caller (`Check`).  The steps of a schedule are in `pygroups.sim.schedules.steps`.  Guides:
docs/guides/scenarios.md and simulator.md.
"""

from __future__ import annotations

from .batches.runner import Outcome, Totals
from .batches.simulations import Simulated, play, read_schedule, schedule_of, shrunk, simulate, write_schedule
from .promises.broken import Broken, Witness
from .promises.facts import Check, Delivery, Rest, UnicastDelivery, Viewed
from .scenarios.apps import Acting, Actor, ReceivedMessage, messages_of
from .scenarios.frames import FrameRule, Hit
from .scenarios.group import ScenarioGroup, scenario
from .scenarios.player import Player
from .schedules.catalog import FAULTS
from .schedules.schedule import Habits, Schedule, Weather
from .schedules.steps import COORDINATOR

__all__ = [
    "COORDINATOR",
    "FAULTS",
    "Acting",
    "Actor",
    "Broken",
    "Check",
    "Delivery",
    "FrameRule",
    "Habits",
    "Hit",
    "Outcome",
    "Player",
    "ReceivedMessage",
    "Rest",
    "ScenarioGroup",
    "Schedule",
    "Simulated",
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
