"""The steps of a schedule, as data: each happens in a simulated world at an instant, or at a moment of its victim."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from .stages import kinds

COORDINATOR: Final = "coordinator"  # in place of a name: the coordinator at the time of the step
FOLLOWER: Final = "follower"  # in place of a name: a member of a view that does not coordinate it
WHOEVER: Final = "whoever"  # with a moment: the first running process that reaches it; without one: any process
SUCCESSOR: Final = "successor"  # in place of the other end of a clog: the next member in the victim's view
ROLES: Final = (COORDINATOR, FOLLOWER, WHOEVER)

TIME_MAX: Final = 10**12  # more than eleven days: no schedule needs more

Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]  # microseconds since the world began
Shift = Annotated[int, Meta(ge=-TIME_MAX, le=TIME_MAX)]  # microseconds, ahead or back
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000)]


Ppm = Annotated[int, Meta(ge=-100_000, le=100_000)]  # parts per million
Nth = Annotated[int, Meta(ge=1, le=100_000)]


Way = Literal["both", "out", "in"]
Leaving = Literal["all", "some", "first", "nothing", "unwritten"]
How = Literal["late", "former", "some", "nobody"]
# When a fault hits: at its instant, or in a later turn of its victim: the turn in which the victim sends any frame,
# delivers, stops for a view change, installs a view, or sends a head with this name (stages.py).
Moment = Annotated[str, Meta(pattern="^(now|sends|delivers|stops|installs|[A-Z][A-Za-z0-9]*([.][A-Z][A-Za-z0-9]*)?)$")]


def moments() -> tuple[str, ...]:
    """Every moment that a fault can wait for."""
    return ("now", "sends", "delivers", "stops", "installs", *kinds())


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all steps: the time at which a step happens."""

    at: Time


class Aimed(Step, frozen=True):
    """Base of the steps that can wait for a moment: the turn in which the victim reaches it for the `nth` time from
    `at` on."""

    moment: Moment = "now"
    nth: Nth = 1


class StartProcess(Step, frozen=True, tag="start"):
    """A process starts under this name and joins; nothing happens if a process runs under this name already."""

    who: str


class Send(Step, frozen=True, tag="send"):
    """The application at `who` sends `count` payloads of `size` bytes at once: multicasts, or messages to the member
    `to`.  If `who` is no member, the next name that is a member sends."""

    who: str
    count: Nth
    size: Annotated[int, Meta(ge=0)]
    to: str | None = None


class Crash(Aimed, frozen=True, kw_only=True, tag="crash"):
    """The process crashes: between two turns, or in the turn of a `moment`, after the turn's journal was written.
    `leaves` says which frames of that turn still leave: all, some, nothing, or those to the first `reaches`
    processes.  With `unwritten` the process crashes right before the turn's journal is written."""

    who: str
    leaves: Leaving = "all"
    reaches: Nth = 1


class Pause(Aimed, frozen=True, kw_only=True, tag="pause"):
    """The process does not run for a time, and arriving frames wait.  With a `moment` the pause begins after that
    turn."""

    who: str
    lasts: Time


class Leave(Step, frozen=True, tag="leave"):
    """The application asks to leave."""

    who: str


class Cut(Aimed, frozen=True, kw_only=True, tag="cut"):
    """The network between `side` and `others` (default: all other processes) is cut for a time: in both directions,
    or only out of the side, or only into the side.  A side of one process that is cut off from all others is
    isolated.  With a `moment` of the side's first member, the cut begins before the frames of that turn leave."""

    side: Annotated[tuple[str, ...], Meta(min_length=1)]
    lasts: Time
    others: tuple[str, ...] | None = None
    way: Way = "both"
    stays: bool = False  # the cut outlasts `heal_at`: it ends with the schedule's `stays`, or never
    refused: bool = False  # connections are reset at once and new ones refused, as if the process had ended


class Far(Step, frozen=True, kw_only=True, tag="far"):
    """For a time all frames between `who` and `other` (default: all other processes) take `by` longer in each
    direction."""

    who: str
    other: str | None = None
    by: Time
    lasts: Time
    stays: bool = False  # as for a Cut


class Ring(Step, frozen=True, tag="ring"):
    """For a time each process reaches only its two neighbors in `order`.  With three processes, the first and the
    last are not neighbors."""

    order: tuple[str, ...]
    lasts: Time


class Flap(Step, frozen=True, kw_only=True, tag="flap"):
    """The network between `who` and `other` (default: all other processes) is cut and mended several times."""

    who: str
    other: str | None = None
    times: Nth
    down: Time
    up: Time


class Clog(Aimed, frozen=True, kw_only=True, tag="clog"):
    """For a time no frame arrives between `who` and `other` (default: all other processes).  No frame is lost: all
    held frames arrive when the clog ends.  With a `moment` the clog begins before the frames of that turn leave.  A
    clog with `until` ends earlier if a process that runs then reaches that moment; `now` means that there is no such
    moment."""

    who: str
    other: str | None = None
    lasts: Time
    way: Way = "both"
    until: Moment = "now"


class Replay(Step, frozen=True, tag="replay"):
    """All frames that `who` sent to `other` in the last `since` microseconds arrive again, in their order, even if
    one of the two processes has restarted."""

    who: str
    other: str
    since: Time


class Break(Step, frozen=True, tag="break"):
    """The connection between two processes is lost, with the frames in transit; both processes run on and can
    connect again."""

    who: str
    other: str


class SlowReader(Step, frozen=True, tag="slow"):
    """For a time the process handles arrivals and its own timers late, by up to `loop_delay`."""

    who: str
    lasts: Time
    loop_delay: Time


class Unread(Step, frozen=True, tag="unread"):
    """For a time the application reads none of its messages: the windows of the other members fill up."""

    who: str
    lasts: Time


class DiskFull(Step, frozen=True, tag="disk-full"):
    """For a time the journal of the process cannot be written.  With `leaves` the member leaves its group then."""

    who: str
    lasts: Time
    leaves: bool = False


class Jump(Step, frozen=True, tag="jump"):
    """The wall clock of the process's host jumps.  Only journals show wall clocks."""

    who: str
    by: Shift


class CloseConnection(Step, frozen=True, tag="forget"):
    """The application at `who` closes its connection with `other`; its next message opens a new connection."""

    who: str
    other: str


class Beside(Step, frozen=True, tag="beside"):
    """A second process starts under a name that is in use, or a process with another profile starts (`stranger`).  The
    process asks to join.  If no member refuses the process, it ends after `lasts`."""

    who: str
    lasts: Time
    stranger: bool = False


class Mislead(Step, frozen=True, tag="mislead"):
    """For a time the directory answers `late`, names `former` members too, names only `some` members, or shows `nobody`
    to members; processes without a view still see the members then.  Where processes take part in a birth, one of the
    `some` is always a member: two processes that forgot their group, and are shown none of it, begin another one."""

    how: How
    lasts: Time


class Attack(Step, frozen=True, kw_only=True, tag="attack"):
    """So many frames of a process that is in no view arrive at `who` within a millisecond: noise, frames of another
    group, and forged heads that only members may send."""

    who: str
    frames: Count


class Gather(Step, frozen=True, tag="gather"):
    """Each process in a view that is not on the largest side ends and starts again.  An operator would do the same,
    because sides do not merge."""


class Vouch(Step, frozen=True, tag="vouch"):
    """Where a majority decides: an operator vouches, at `who` or at the next blocked process, that a process which this
    one misses has ended for good.  Nothing happens if no process is blocked by ended ones.

    In a schedule with this step, an operator also vouches when a group has lost its majority.  Otherwise all processes
    of the group restart.
    """

    who: str


Action = (
    StartProcess
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
    | SlowReader
    | Unread
    | DiskFull
    | Jump
    | CloseConnection
    | Beside
    | Mislead
    | Attack
    | Gather
    | Vouch
)
