"""A schedule lists the steps of a simulated run, as data: programs can write it to a file, read it, repeat it and
minimize it.

A seed stands for the schedule that `draw.draw` draws from it.  The remaining chance, such as the delay of one frame,
comes from random streams.  Each stream depends on the seed and on one purpose, so one more decision does not change the
others.
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
    ROLES,
    SUCCESSOR,
    Action,
    Break,
    Clog,
    Count,
    Cut,
    Nth,
    Ppm,
    Replay,
    Ring,
    Send,
    Share,
    StartProcess,
    Time,
    moments,
)

FORMAT: Final = 1


Giving = Literal["gives", "raises", "hangs", "keeps none"]
OnMerge = Literal["keep", "primary", "last", "fails"]  # "last": a function that returns the last side it is given


class Weather(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The network's treatment of frames until all faults heal.  A share is a share of the frames of each link."""

    delay: Time = 200  # usual delay of a link; each link has between half of it and twice as much
    jitter: Time = 100
    loss: Share = 0.0
    bursts: Share = 0.0  # share of the frames after which a burst of losses begins
    burst_frames: Nth = 20
    repeat: Share = 0.0  # a copy follows shortly after the frame
    reorder: Share = 0.0
    reorder_by: Time = 5 * MILLISECOND
    tail: Share = 0.0  # frames that take far longer, a few of them up to tail_max
    tail_max: Time = 2 * SECOND
    late: Share = 0.0  # a copy arrives much later: in another view, on another connection, at a restarted process
    late_max: Time = 5 * SECOND
    corrupt: Share = 0.0  # bits are flipped, the end is missing, or two frames are joined

    @property
    def treats(self) -> bool:
        """Whether the weather has any effect on frames besides the usual delay."""
        return any((self.loss, self.bursts, self.repeat, self.reorder, self.tail, self.late, self.corrupt))

    @property
    def lateness(self) -> int:
        """The longest delay of a frame beyond the usual delay, in microseconds."""
        return max(self.late_max if self.late else 0, self.tail_max if self.tail else 0)


class Habits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behavior of the process that runs under a name."""

    loop_delay: Time = 100  # longest time from an arrival to the turn that handles it
    reads_after: Time = 1 * MILLISECOND  # longest time from a delivery until the application consumes it
    drift: Ppm = 0  # how much faster than true time the clock of the layers runs
    wall_drift: Ppm = 0  # the same for the wall clock, which only the journal shows
    state: Giving = "gives"  # behavior of get_state(), when the member must give its state to joiners
    state_apart: Time = 0  # longest time between two parts of a state that the member gives


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run to play: the members, the steps with their times, and the time by which every promise must hold again."""

    format: int = FORMAT
    seed: int
    profile: str
    names: tuple[str, ...]
    habits: dict[str, Habits] = {}  # for each of the names
    config: dict[str, int] = {}  # the values that differ from the defaults of core.limits.Config
    weather: Weather = Weather()
    streams: bool = False  # whether frames travel as over TCP (world/pipes.py); otherwise as datagrams
    on_merge: OnMerge = "keep"  # how the members choose the side that wins a merge; "fails": a function that raises
    rejoin: bool = False  # whether an excluded process restarts as a new incarnation
    duties: bool = False  # whether the duties of time are tested after all faults have healed (world/ending.py)
    others: tuple[str, ...] = ()  # names of the processes with other settings: they are a group of their own
    others_meet_at: Time = 0  # from this time on the two groups find each other
    expect: Count = 0  # where a majority decides: the processes that take part in the birth; 0: a lock decides
    folders: Share = 0.0  # where a majority decides: the chance that a process has the folder of its former lives
    actions: tuple[Action, ...]  # by time
    heal_at: Time  # all faults end, except lasting ones
    stays: Time = 0  # lasting faults end this long after heal_at
    for_good: bool = False  # lasting faults never end: promises are judged while they last, and not afterwards
    bound: Time  # time after heal_at within which every promise must be kept

    @property
    def trip(self) -> int:
        """The longest time from a turn of one process to the turn of another in good weather, in microseconds: the
        delays of both event loops and of the link."""
        wait = max((habits.loop_delay for habits in self.habits.values()), default=0)
        return 2 * self.weather.delay + self.weather.jitter + 2 * wait


def stream(seed: int, *purpose: object) -> random.Random:
    """A random stream for one purpose.  The stream is the same in every process, because its seed is a text and not
    a hash."""
    return random.Random("/".join([str(seed), *map(str, purpose)]))


def to_json(schedule: Schedule) -> bytes:
    """The schedule as JSON for people and programs: one line for each step, without the fields that have their
    default."""
    fields: dict[str, Any] = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    fields["habits"] = {name: _unusual(habits) for name, habits in schedule.habits.items() if habits != Habits()}
    fields["weather"] = _unusual(schedule.weather)
    fields["actions"] = [{"at": step.at, "type": _type(step)} | _unusual(step) for step in schedule.actions]
    usual = {field.name: field.default for field in msgspec.structs.fields(schedule) if field.name != "format"}
    written = [name for name, value in fields.items() if value not in ({}, usual.get(name, {}))]
    lines = [f' "{name}": {_text(fields[name])}' for name in written]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _type(step: Action) -> str:
    return str(type(step).__struct_config__.tag)


def _unusual(of: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that differ from their defaults."""
    fields = msgspec.structs.fields(of)
    return {field.name: value for field in fields if (value := getattr(of, field.name)) != field.default}


def _text(value: object) -> str:
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]"
    return json.dumps(value)


def from_json(text: bytes) -> Schedule:
    """Read a schedule that `to_json` wrote.  Raises UsageError, with the reason, for a text that is not a valid
    schedule."""
    try:
        schedule = msgspec.json.decode(text, type=Schedule)
    except msgspec.DecodeError as error:
        raise UsageError(f"this is not a schedule of the simulator: {error}") from error
    if schedule.format != FORMAT:
        raise UsageError(f"the schedule has format {schedule.format}, this version reads {FORMAT}")
    _check_names(schedule)
    _check_config(schedule.config)
    _check_steps(schedule)
    habits = {name: schedule.habits.get(name, Habits()) for name in schedule.names}
    return msgspec.structs.replace(schedule, habits=habits)


def _check_names(schedule: Schedule) -> None:
    """Raise UsageError for an unknown name or labeled point: a fault that waits for one would never happen."""
    names = [checked_name(name, "member") for name in schedule.names]
    if not names or len(set(names)) < len(names) or {*ROLES, SUCCESSOR} & set(names):
        raise UsageError("the schedule needs at least one name, each name once, and no name of a role")
    for name in schedule.others:
        if name not in names:
            raise UsageError(f"the schedule has other settings for {name!r}, which is none of its names")
    for name in schedule.habits:
        if name not in names:
            raise UsageError(f"the schedule has habits of {name!r}, which is none of its names")
    for number, step in enumerate(schedule.actions, 1):
        roles = () if isinstance(step, StartProcess | Send | Replay) else ROLES
        first, rest = _meant(step)
        successor = isinstance(step, Clog) and step.other == SUCCESSOR
        for name in [*[one for one in first if one not in roles], *rest]:
            if name not in names and not (successor and name == SUCCESSOR):
                raise UsageError(
                    f"step {number} of the schedule has the name {name!r}, which is none of the schedule's names"
                )
        for moment in (getattr(step, "moment", "now"), getattr(step, "until", "now")):
            if moment not in moments():
                raise UsageError(f"step {number} of the schedule waits for {moment!r}, which no member ever reaches")


def _check_steps(schedule: Schedule) -> None:
    """Raise UsageError for a payload that is too large, and for a fault after all others have healed, which would
    never end."""
    largest = Config(**schedule.config).payload_max
    if schedule.for_good and not schedule.stays:
        raise UsageError("the schedule has for_good and stays 0: no promise would be judged while the faults last")
    for number, step in enumerate(schedule.actions, 1):
        if isinstance(step, Send) and step.size > largest:
            raise UsageError(f"step {number} of the schedule sends {step.size:,} bytes; the limit is {largest:,}")
        if step.at > schedule.heal_at + schedule.stays and not isinstance(step, StartProcess | Send):
            raise UsageError(f"step {number} of the schedule comes after heal_at, the time at which all faults end")


def _meant(step: Action) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names in a step: first those that most steps may replace by a role, then those that are always names."""
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
            raise UsageError(f"the schedule's config has {name!r}, which is neither a limit nor a timeout")
    Config(**config)
