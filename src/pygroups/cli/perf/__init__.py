"""`pygroups perf`: measures a real group of processes on this machine."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter, Token

from pygroups.cli.options import Flag, Whole
from pygroups.core.errors import UsageError
from pygroups.core.services import MEMBERSHIP, PRIMARY

if TYPE_CHECKING:
    from pygroups.cli.perf.messages import Load, Task

MEMBERS_MAX: Final = 64
DURATION_MAX: Final = 3_600.0  # seconds
ALL: Final = 0
AT_MOST: Final = math.inf  # the rate of a sender that sends as fast as its window lets it


def _senders(_: Any, tokens: tuple[Token, ...]) -> int:
    text = tokens[0].value
    if text == "all":
        return ALL
    if not re.fullmatch(r"[1-9]\d{0,4}", text, re.ASCII):
        raise ValueError(f"{text[:60]!r} is neither all nor a number of members.")
    return int(text)


def _rate(_: Any, tokens: tuple[Token, ...]) -> float:
    text = tokens[0].value
    if text == "max":
        return AT_MOST
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII) or not float(text):
        raise ValueError(f"{text[:60]!r} is neither max nor a number of messages a second.")
    return float(text)


def perf(
    *,
    members: Whole = 4,
    senders: Annotated[int, Parameter(converter=_senders, show_default=lambda _: "all")] = ALL,
    size: Whole = 100,
    rate: Annotated[float, Parameter(converter=_rate, show_default=lambda _: "max")] = AT_MOST,
    profile: str = "total",
    transport: str | None = None,
    duration: float = 10.0,
    each: Flag = False,
    failover: Flag = False,
    journal: Path | None = None,
    json: Flag = False,
) -> int:
    """Measure a real group on this machine.

    Parameters
    ----------
    members
        The number of processes.
    senders
        The number of members that send, or all.
    size
        The bytes of a message, at least 16.
    rate
        The messages that each sender sends in a second, or max: as many as its window lets it.
    profile
        The guarantees of the group.
    transport
        tcp or udp. Without it, the transport of the profile.
    duration
        The seconds that are measured, after one second of load that is not.
    each
        Read message by message. Without it, members read batches.
    failover
        Kill the coordinator in the middle, and measure for how long the others deliver nothing.
    journal
        A folder; each member writes its journal there.
    json
        Print one JSON object.
    """
    from pygroups.cli.perf.director import measure
    from pygroups.cli.perf.messages import Load
    from pygroups.cli.perf.result import printed

    _check(members, senders, size, profile, duration, failover=failover)
    task = _task(members, profile, transport, journal, Load(size, None if rate == AT_MOST else rate, each))
    result = measure(task, members, senders or members, duration, failover=failover)
    print(printed(result, json=json))
    return 0 if result.is_right else 1


def _task(members: int, profile: str, transport: str | None, journal: Path | None, load: Load) -> Task:
    """What every member is told.  Raises UsageError for an unknown transport."""
    from pygroups.cli.perf.messages import Task
    from pygroups.drivers.transports import parse_transport
    from pygroups.layers.profiles import profile_named

    chosen = profile_named(profile)
    carrier = (chosen.transport if transport is None else transport) or "tcp"
    parse_transport(carrier)
    expect = members if PRIMARY in chosen.services else None
    folder = None if journal is None else str(journal.absolute())
    return Task("perf", 0, profile, carrier, "", expect, folder, load)


def _check(members: int, senders: int, size: int, profile: str, duration: float, *, failover: bool) -> None:
    """Raise UsageError for values that no measurement has."""
    from pygroups.cli.perf.messages import HEAD
    from pygroups.core.limits import Config
    from pygroups.layers.profiles import profile_named

    services = profile_named(profile).services
    if MEMBERSHIP not in services:
        raise UsageError(f"--profile {profile} has no group to measure")
    if not 1 <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} must be from 1 to {MEMBERS_MAX}")
    if senders > members:
        raise UsageError(f"--senders {senders} are more than the {members} members")
    if size < HEAD.size:
        raise UsageError(
            f"--size {size} must be at least {HEAD.size}: each message carries its sender, number and time"
        )
    if size > Config().payload_max:
        raise UsageError(f"--size {size} must be at most {Config().payload_max}: a message has no more bytes")
    if not 0 < duration <= DURATION_MAX:
        raise UsageError(f"--duration {duration:g} must be more than 0 and at most {DURATION_MAX:,.0f} seconds")
    if failover and members < (3 if PRIMARY in services else 2):
        raise UsageError(f"--failover with {members} members: nobody goes on without the coordinator; give more")
