"""What happens in a simulated world, as data: it can be written to a file, read again, repeated and made smaller.

A seed means the schedule that `draw.draw` draws from it.  What is left to chance beside it, such as the delay of one
frame, comes from streams that hang on the seed and a purpose each: one decision more does not change the others.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final, Literal

import msgspec

from pygroups.core.address import checked_name
from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLISECOND, SECOND, Config

from .steps import (
    MOMENTS,
    ROLES,
    SUCCESSOR,
    Action,
    Break,
    Clog,
    Cut,
    Nth,
    Ppm,
    Replay,
    Ring,
    Send,
    Share,
    Start,
    Time,
)

FORMAT: Final = 1


Giving = Literal["gives", "raises", "hangs", "keeps none"]


class Weather(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the network does to frames until everything heals.  Shares are of frames, on each link by itself."""

    delay: Time = 200  # the usual way from one to another; a link has between half and twice of it
    jitter: Time = 100
    loss: Share = 0.0
    bursts: Share = 0.0  # after this share of frames, a burst of losses begins
    burst_frames: Nth = 20
    repeat: Share = 0.0  # a copy follows soon
    reorder: Share = 0.0
    reorder_by: Time = 5 * MILLISECOND
    tail: Share = 0.0  # so many take far longer, a few up to tail_max
    tail_max: Time = 2 * SECOND
    late: Share = 0.0  # a copy comes again long after: in another view, over another connection, to another life
    late_max: Time = 5 * SECOND
    corrupt: Share = 0.0  # bits are flipped, the end is missing, or two frames are glued together

    @property
    def treats(self) -> bool:
        """Whether frames have any other fate than to arrive after the usual time."""
        return any((self.loss, self.bursts, self.repeat, self.reorder, self.tail, self.late, self.corrupt))

    @property
    def lateness(self) -> int:
        """By how much later than usual a frame can come."""
        return max(self.late_max if self.late else 0, self.tail_max if self.tail else 0)


class Habits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the process under a name behaves."""

    loop_delay: Time = 100  # until what has arrived is looked at, at most
    reads_after: Time = 1 * MILLISECOND  # until the application has consumed what it was given, at most
    drift: Ppm = 0  # how much faster the clock runs that its layers see
    wall_drift: Ppm = 0  # and the one that only its journal shows
    state: Giving = "gives"  # what its get_state() does, when it shall give the state to joiners
    state_apart: Time = 0  # between two parts of a state that it gives, at most


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One history to play: who takes part, what happens when, and when everything must be well again."""

    format: int = FORMAT
    seed: int
    profile: str
    names: tuple[str, ...]
    habits: dict[str, Habits] = {}  # for each of the names
    config: dict[str, int] = {}  # what differs from the defaults of core.limits.Config
    weather: Weather = Weather()
    rejoin: bool = False  # whether a process that was excluded comes back as a new life
    duties: bool = False  # whether, when all is quiet, duties of time are tried out (world/ending.py)
    actions: tuple[Action, ...]  # by time
    heal_at: Time  # all faults end but those that stay
    stays: Time = 0  # so long after it those end too; what happens meanwhile is over by then as well
    for_good: bool = False  # what stays never ends: what is promised while it lasts is judged, and nothing after it
    bound: Time  # after heal_at, until everything promised must have happened

    @property
    def trip(self) -> int:
        """The longest way from one process's turn to another's in good weather: what it waits for, the link, and
        again."""
        wait = max((habits.loop_delay for habits in self.habits.values()), default=0)
        return 2 * self.weather.delay + self.weather.jitter + 2 * wait


def stream(seed: int, *purpose: object) -> random.Random:
    """Chance for one purpose.  The same in every process: a text seeds it, never a hash."""
    return random.Random("/".join([str(seed), *map(str, purpose)]))


def to_json(schedule: Schedule) -> bytes:
    """The schedule as a file for people and programs: a line for each step, and nothing of what is as usual."""
    fields: dict[str, Any] = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    fields["habits"] = {name: _unusual(habits) for name, habits in schedule.habits.items() if habits != Habits()}
    fields["weather"] = _unusual(schedule.weather)
    fields["actions"] = [{"at": step.at, "type": _type(step)} | _unusual(step) for step in schedule.actions]
    lines = [
        f' "{name}": {_text(value)}' for name, value in fields.items() if value not in (False, {}) or name == "seed"
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _type(step: Action) -> str:
    return str(type(step).__struct_config__.tag)


def _unusual(of: msgspec.Struct) -> dict[str, Any]:
    """What of it differs from the defaults."""
    fields = msgspec.structs.fields(of)
    return {field.name: value for field in fields if (value := getattr(of, field.name)) != field.default}


def _text(value: object) -> str:
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]"
    return json.dumps(value)


def from_json(text: bytes) -> Schedule:
    """The schedule that `to_json` wrote; UsageError says what is wrong with it."""
    try:
        schedule = msgspec.json.decode(text, type=Schedule)
    except msgspec.DecodeError as error:
        raise UsageError(f"this is no schedule of the simulator: {error}") from error
    if schedule.format != FORMAT:
        raise UsageError(f"the schedule has format {schedule.format}, this version reads {FORMAT}")
    _check_names(schedule)
    _check_config(schedule.config)
    _check_steps(schedule)
    habits = {name: schedule.habits.get(name, Habits()) for name in schedule.names}
    return msgspec.structs.replace(schedule, habits=habits)


def _check_names(schedule: Schedule) -> None:
    """UsageError for a name, or a labeled point, that is none: whatever waited for it would never happen."""
    names = [checked_name(name, "member") for name in schedule.names]
    if not names or len(set(names)) < len(names) or {*ROLES, SUCCESSOR} & set(names):
        raise UsageError("the schedule needs at least one name, each of them once, and none that is a role")
    for name in schedule.habits:
        if name not in names:
            raise UsageError(f"the schedule has habits of {name!r}, who is none of its names")
    for number, step in enumerate(schedule.actions, 1):
        roles = () if isinstance(step, Start | Send | Replay) else ROLES
        first, rest = _meant(step)
        successor = isinstance(step, Clog) and step.other == SUCCESSOR
        for name in [*[one for one in first if one not in roles], *rest]:
            if name not in names and not (successor and name == SUCCESSOR):
                raise UsageError(f"step {number} of the schedule means {name!r}, who is none of its names")
        for moment in (getattr(step, "moment", "now"), getattr(step, "until", "now")):
            if moment not in MOMENTS:
                raise UsageError(f"step {number} of the schedule waits for {moment!r}, which nobody ever sends")


def _check_steps(schedule: Schedule) -> None:
    """UsageError for a payload that is too large, and for a fault after everything has healed: it would never end."""
    largest = Config(**schedule.config).payload_max
    if schedule.for_good and not schedule.stays:
        raise UsageError("in the schedule faults stay for good, and stays is 0: nothing would be judged")
    for number, step in enumerate(schedule.actions, 1):
        if isinstance(step, Send) and step.size > largest:
            raise UsageError(f"step {number} of the schedule sends {step.size:,} bytes; the limit is {largest:,}")
        if step.at > schedule.heal_at + schedule.stays and not isinstance(step, Start | Send):
            raise UsageError(f"step {number} of the schedule comes after heal_at, when there are no faults any more")


def _meant(step: Action) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names in a step: those in whose place most steps may have a role, and those that are always names."""
    if isinstance(step, Cut):
        return step.side[:1], (*step.side[1:], *(step.others or ()))
    if isinstance(step, Ring):
        return (), step.order
    if isinstance(step, Break):
        return (step.who, step.other), ()
    who, others = getattr(step, "who", None), (getattr(step, "to", None), getattr(step, "other", None))
    return (() if who is None else (who,)), tuple(name for name in others if name is not None)


def _check_config(config: dict[str, int]) -> None:
    for name in config:
        if name not in Config.__struct_fields__:
            raise UsageError(f"the schedule's config has {name!r}, which is no limit and no time-out")
    Config(**config)
