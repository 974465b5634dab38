"""What happens in a simulated world, as data: it can be written to a file, read again, repeated and made smaller.

A seed means the schedule that `draw.draw` draws from it.  What is left to chance beside it, such as the delay of one
frame, comes from streams that hang on the seed and a purpose each: one decision more does not change the others.
"""

from __future__ import annotations

import json
import random
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from pygroups.core.address import checked_name
from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLISECOND, SECOND, Config

from .stages import LABELS

FORMAT: Final = 1
COORDINATOR: Final = "coordinator"  # in place of a name: whoever coordinates when the time comes
FOLLOWER: Final = "follower"  # in place of a name: somebody in a view who does not coordinate it
WHOEVER: Final = "whoever"  # with a moment: whoever of those who run is the first to come to it; without one, anybody
SUCCESSOR: Final = "successor"  # in place of the other end of a clog: who is next in the victim's view, or the first
ROLES: Final = (COORDINATOR, FOLLOWER, WHOEVER)

TIME_MAX: Final = 10**12  # more than eleven days: nobody waits for the end of that

Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]  # microseconds since the world began
Shift = Annotated[int, Meta(ge=-TIME_MAX, le=TIME_MAX)]  # microseconds, ahead or back
Share = Annotated[float, Meta(ge=0, le=1)]


Ppm = Annotated[int, Meta(ge=-100_000, le=100_000)]  # parts per million
Nth = Annotated[int, Meta(ge=1, le=100_000)]

MOMENTS: Final = ("now", "sends", "delivers", "stops", "installs", *LABELS.values())

Way = Literal["both", "out", "in"]
Leaving = Literal["all", "some", "first", "nothing"]
Giving = Literal["gives", "raises", "hangs", "keeps none"]
How = Literal["late", "former", "some"]
# When a fault hits that was aimed at an instant: then, or in a later turn of its victim: the one in which it sends
# anything, delivers, stops for a view change, installs a view, or sends a head with this name (sim/stages.py).
Moment = Annotated[str, Meta(pattern="^(now|sends|delivers|stops|installs|[A-Z][A-Za-z0-9]*([.][A-Z][A-Za-z0-9]*)?)$")]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what happens at an instant."""

    at: Time


class Aimed(Step, frozen=True):
    """Base of what can wait for a moment: the turn in which the victim does that for the `nth` time from then on."""

    moment: Moment = "now"
    nth: Nth = 1


class Start(Step, frozen=True, tag="start"):
    """A process starts under this name and joins; nothing happens if one runs under it already."""

    who: str


class Send(Step, frozen=True, tag="send"):
    """The application at `who`, or at the next name that is a member, sends `count` payloads of `size` bytes at once:
    multicasts, or messages to the member `to`."""

    who: str
    count: Nth
    size: Annotated[int, Meta(ge=0)]
    to: str | None = None


class Crash(Aimed, frozen=True, kw_only=True, tag="crash"):
    """The process ends without a word: between two turns, or, at a `moment`, after the turn's journal was written and
    with all, some or nothing of its frames on the wire, or with those to the first `reaches` processes."""

    who: str
    leaves: Leaving = "all"
    reaches: Nth = 1


class Pause(Aimed, frozen=True, kw_only=True, tag="pause"):
    """The process does not run for a time; what arrives waits.  At a `moment`: after that turn."""

    who: str
    lasts: Time


class Leave(Step, frozen=True, tag="leave"):
    """The application asks to leave."""

    who: str


class Cut(Aimed, frozen=True, kw_only=True, tag="cut"):
    """The network between `side` and `others` (all the rest, if not given) is cut for a time: both ways, or only what
    goes out of the side, or only what comes in.  A side of one, cut off from all the rest, is isolated.  At a `moment`
    of the side's first member: before what that turn sends."""

    side: Annotated[tuple[str, ...], Meta(min_length=1)]
    lasts: Time
    others: tuple[str, ...] | None = None
    way: Way = "both"
    stays: bool = False  # it outlasts `heal_at`: it ends when the schedule's `stays` is over, or never
    refused: bool = False  # connections over it are reset at once, and new ones refused: as if the process had ended


class Far(Step, frozen=True, kw_only=True, tag="far"):
    """For a time everything between `who` and `other` (all the rest, if not given) takes `by` longer, each way."""

    who: str
    other: str | None = None
    by: Time
    lasts: Time
    stays: bool = False  # as for a Cut


class Ring(Step, frozen=True, tag="ring"):
    """For a time each process reaches only its two neighbors in `order`; of three, the first and the last are none."""

    order: tuple[str, ...]
    lasts: Time


class Flap(Step, frozen=True, kw_only=True, tag="flap"):
    """The network between `who` and `other` (all the rest, if not given) goes away and comes back, several times."""

    who: str
    other: str | None = None
    times: Nth
    down: Time
    up: Time


class Clog(Aimed, frozen=True, kw_only=True, tag="clog"):
    """Nothing gets through between `who` and `other` (all the rest, if not given) for a time, and nothing is lost: all
    of it arrives at once when that is over.  At a `moment`: before what that turn sends.  It is over at the latest when
    anybody who runs then comes to the moment `until` next; `now`: it has none."""

    who: str
    other: str | None = None
    lasts: Time
    way: Way = "both"
    until: Moment = "now"


class Replay(Step, frozen=True, tag="replay"):
    """Everything that `who` sent `other` in the last microseconds `since` arrives again, in its order; also if either
    lives anew."""

    who: str
    other: str
    since: Time


class Break(Step, frozen=True, tag="break"):
    """The connection between two processes is lost, with what is on its way; both live and can connect again."""

    who: str
    other: str


class Slow(Step, frozen=True, tag="slow"):
    """For a time the process is late for everything, what arrives and its own timers, by up to `loop_delay`."""

    who: str
    lasts: Time
    loop_delay: Time


class Unread(Step, frozen=True, tag="unread"):
    """For a time the application reads nothing of what it is given: the windows of the others fill up."""

    who: str
    lasts: Time


class Jump(Step, frozen=True, tag="jump"):
    """The wall clock of the process's host is set anew.  Only journals show it."""

    who: str
    by: Shift


class Forget(Step, frozen=True, tag="forget"):
    """The application at `who` closes its connection with `other`; what it sends later opens another one."""

    who: str
    other: str


class Beside(Step, frozen=True, tag="beside"):
    """A second process starts under a name that is taken, or one with another profile (`stranger`), and wants to join.
    If it is not refused it ends by itself, after `lasts`."""

    who: str
    lasts: Time
    stranger: bool = False


class Mislead(Step, frozen=True, tag="mislead"):
    """For a time whoever looks for a group hears of it `late`, of `former` members too, or only of `some`."""

    how: How
    lasts: Time


class Gather(Step, frozen=True, tag="gather"):
    """Whoever is in a view, but not on the largest side, ends and starts again: as somebody would see to while sides do
    not merge."""


Action = (
    Start
    | Send
    | Crash
    | Pause
    | Leave
    | Cut
    | Far
    | Ring
    | Flap
    | Clog
    | Replay
    | Break
    | Slow
    | Unread
    | Jump
    | Forget
    | Beside
    | Mislead
    | Gather
)


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
    duties: bool = False  # whether, when all is quiet, duties of time are tried out (sim/ending.py)
    actions: tuple[Action, ...]  # by time
    heal_at: Time  # all faults end but those that stay
    stays: Time = 0  # so long after it those end too; what happens meanwhile is over by then as well
    for_good: bool = False  # what stays never ends: what is promised while it lasts is judged, and nothing after it
    bound: Time  # after heal_at, until everything promised must have happened


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
    """UsageError for a payload that no run holds, and for a fault after everything has healed: it would never end."""
    largest = Config(**schedule.config).run_bytes
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
