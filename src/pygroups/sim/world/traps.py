"""Faults that wait for what a member does, as each member carries them; moments.py says when they strike."""

from __future__ import annotations

import msgspec

from ..schedules.steps import Aimed


class Trap(msgspec.Struct):
    """A fault that waits for what a member does, or several."""

    fault: Aimed
    left: int  # so often it has to happen yet
    over: bool = False  # it has struck


class Armed(msgspec.Struct):
    """What this member does is counted for a trap."""

    trap: Trap
    sent: int  # how many heads with that label the member has sent so far
