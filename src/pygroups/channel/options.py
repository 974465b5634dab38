"""The options of a channel, checked before anything is opened.  Each error message says how to correct the option."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import socket
from pathlib import Path
from typing import NamedTuple

from pygroups.core.address import checked_name
from pygroups.core.errors import NotBuilt, UsageError
from pygroups.core.limits import Config as Limits
from pygroups.drivers.contacts import advertised, checked_bind
from pygroups.drivers.places import Place, parse_discovery
from pygroups.drivers.transports import Transport, parse_transport
from pygroups.layers.profiles import Profile, profile_named

from .config import Config
from .states import State

_lives = itertools.count(1)  # channels of this process


class Options(NamedTuple):
    """The checked options of a channel; see Channel for the meaning of each."""

    group: str
    profile: Profile
    name: str | None  # without one, the platform makes one that no other member has
    bind: str
    advertise: str | None
    insecure: bool
    transport: Transport
    place: Place
    journal: Path | None
    journal_payloads: bool
    journal_fsync: bool
    state: State | None
    events: str  # "all" or "none"
    config: Limits


def checked_options(
    group: str | None,
    *,
    profile: str,
    name: str | None,
    bind: str,
    advertise: str | None,
    transport: str | None,
    discovery: str | None,
    insecure: bool,
    journal: str | os.PathLike[str] | None,
    journal_payloads: bool,
    journal_fsync: bool,
    state: State | None,
    events: str,
    config: Config | Limits | None,
) -> Options:
    """The checked options.  Raises UsageError for a wrong value, and NotBuilt for a value that is not built yet."""
    _check_types(profile=profile, name=name, bind=bind, advertise=advertise, discovery=discovery)
    _check_flags(insecure=insecure, journal_payloads=journal_payloads, journal_fsync=journal_fsync)
    chosen = profile_named(profile)
    if group is None:
        raise UsageError(f"profile {profile!r} needs a group: give it a name, for instance Channel('orders')")
    checked_name(group, "group")
    carried = parse_transport(transport)
    bound = checked_bind(bind, advertise, insecure=insecure)
    advertised(bound, advertise)
    if journal is not None and not isinstance(journal, str | os.PathLike):
        raise UsageError(f"journal={journal!r} must be the path of a folder")
    if journal is None and (journal_payloads or journal_fsync):
        raise UsageError("journal_payloads and journal_fsync need journal=DIR, the folder to write to")
    _check_state(state)
    _check_events(events, state)
    return Options(
        group=group,
        profile=chosen,
        name=None if name is None else checked_name(name, "member"),
        bind=bind,
        advertise=advertise,
        insecure=insecure,
        transport=carried,
        place=parse_discovery(discovery),
        journal=None if journal is None else Path(journal),
        journal_payloads=journal_payloads,
        journal_fsync=journal_fsync,
        state=state,
        events=events,
        config=carried.limits(_limits(config)),
    )


def refuse_unbuilt(expect: int | None, rejoin: bool, on_merge: object, secret: object) -> None:
    """Raise NotBuilt for an option that is part of the design and is not built yet."""
    if expect is not None:
        raise NotBuilt("expect= is not built yet: leave it out")
    if rejoin:
        raise NotBuilt("rejoin=True is not built yet: open a new channel after Left")
    if on_merge != "keep":
        raise NotBuilt("on_merge= is not built yet: leave it out")
    if secret is not None:
        raise NotBuilt("secret= is not built yet: bind to loopback, where only this machine can reach the group")


def _check_events(events: object, state: object) -> None:
    if events not in ("all", "none"):
        raise UsageError(f"events={events!r} is not known: use 'all', or 'none' for a program that only sends")
    if events == "none" and state is not None:
        raise UsageError("state= needs events: leave out events='none', because a state is given and set while reading")


def _check_types(profile: object, bind: object, **optional: object) -> None:
    for name, value in {"profile": profile, "bind": bind}.items():
        if not isinstance(value, str):
            raise UsageError(f"{name}={value!r} must be text")
    for name, value in optional.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name}={value!r} must be text, or left out")


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r} must be True or False")


def _check_state(state: object) -> None:
    if state is None:
        return
    for name in ("get_state", "set_state"):
        method = getattr(state, name, None)
        if not callable(method):
            raise UsageError("state= needs an object with async methods get_state() and set_state(data)")
        if not (inspect.iscoroutinefunction(method) or (name == "get_state" and inspect.isasyncgenfunction(method))):
            raise UsageError(f"the {name} of state= must be a coroutine function: write it as `async def {name}`")


def _limits(config: Config | Limits | None) -> Limits:
    if isinstance(config, Config):
        return config.limits()
    if config is not None and not isinstance(config, Limits):
        raise UsageError(f"config= needs a pygroups.Config, not {type(config).__name__}")
    return config or Limits()


def default_name() -> str:
    """A unique name: host and process id, and from the second channel of the process on also the channel's number."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:40] or "host"
    number = next(_lives)
    return f"{host}-{os.getpid()}" + (f"-{number}" if number > 1 else "")


def boot_id() -> str:
    """The id of this machine's boot: monotonic clocks are comparable only within one boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # another system, or no descriptor is left
        return "unknown"
