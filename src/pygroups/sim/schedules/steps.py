"""The steps of a schedule: what happens in a simulated world at an instant, or at a moment of its victim, as data."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from .stages import LABELS

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
Leaving = Literal["all", "some", "first", "nothing", "unwritten"]
How = Literal["late", "former", "some"]
# When a fault hits that was aimed at an instant: then, or in a later turn of its victim: the one in which it sends
# anything, delivers, stops for a view change, installs a view, or sends a head with this name (stages.py).
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
    with all, some or nothing of its frames on the wire, or with those to the first `reaches` processes; `unwritten`:
    right before the turn's journal is written."""

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
