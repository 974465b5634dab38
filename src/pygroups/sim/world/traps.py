"""Faults that wait for an action of a member.  Each member keeps a list of these faults, and moments.py decides when
they happen."""

from __future__ import annotations

import msgspec

from ..schedules.steps import Aimed


class Trap(msgspec.Struct):
    """A fault that waits for an action of one or several members."""

    fault: Aimed
    left: int  # number of actions until the fault happens
    over: bool = False  # whether the fault has happened


class Armed(msgspec.Struct):
    """A trap at one member, which counts this member's actions."""

    trap: Trap
    sent: int  # number of heads with that label that the member has sent so far
