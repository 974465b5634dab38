"""The options of a channel, checked before anything is opened.  Each error message says how to correct the option."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Concatenate, Final, Literal, ParamSpec, TypeVar

import msgspec

from pygroups.core.address import checked_name
from pygroups.core.errors import NotBuilt, UsageError
from pygroups.core.fingerprint import fingerprint
from pygroups.core.layer import NEVER
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.limits import Config as Limits
from pygroups.core.merge_side import KEEP, OnMerge
from pygroups.core.merge_side import PRIMARY as PRIMARY_SIDE
from pygroups.core.services import ANY_SIZE, GOSSIP, MEMBERSHIP, MERGING, PRIMARY, STATE_AT_VIEW
from pygroups.drivers.contacts import checked_advertise, checked_bind
from pygroups.drivers.discovery.options import DiscoverySources, absolute, parse_discovery
from pygroups.drivers.hello import NO_GROUP
from pygroups.drivers.secret_file import SecretFile
from pygroups.drivers.transports import PARTS, Transport, parse_transport
from pygroups.layers.profiles import Profile, profile_named
from pygroups.wire.ring import Secret, parse_ring, ring_of_bytes
from pygroups.wire.seal import check_available

from .config import Config
from .state.states import LargeState, State

Given = ParamSpec("Given")
Made = TypeVar("Made")
Taker = TypeVar("Taker")
PIDS_OF_CONTAINERS: Final = 1_000  # smaller process ids repeat: each container counts from 1
UNBUILT: Final = {
    "rotate_on_exclude": "an excluded process has every key that could carry the new one; change the key by hand, as "
    "docs/guides/secret.md says"
}
"""Options that are not built, and why not."""
_lives = itertools.count(1)  # channels of this process


@dataclass(frozen=True)
class Options:
    """The options of a channel, with their types and defaults: Channel has the same.  See Channel for their meaning.

    Raises UsageError for a wrong value.
    """

    group: str | None
    _: KW_ONLY
    profile: str = "total"
    name: str | None = None  # None: the platform makes a name that no other member has
    bind: str = "127.0.0.1:0"
    advertise: str | None = None
    transport: str | None = None
    discovery: str | Sequence[str] | None = None
    min_members: int | None = None
    expect: int | None = None
    rejoin: bool = False
    on_merge: str | OnMerge = KEEP
    secret: bytes | str | os.PathLike[str] | None = field(default=None, repr=False)
    insecure: bool = False
    journal: str | os.PathLike[str] | None = None
    journal_payloads: bool = False
    journal_fsync: bool = False
    state: State | LargeState | None = None
    events: Literal["all", "none"] = "all"
    config: Config | Limits | None = None

    def __post_init__(self) -> None:
        _check_types(self.profile, self.bind, name=self.name, advertise=self.advertise)
        _check_discovery(self.discovery)
        _check_flags(insecure=self.insecure, rejoin=self.rejoin)
        _check_flags(journal_payloads=self.journal_payloads, journal_fsync=self.journal_fsync)
        _check_group(self.group, self.chosen_profile)
        _ = self.carrier
        _ = self.keys
        checked_bind(self.bind, insecure=self.leaves_machine)
        if self.advertise is not None:
            checked_advertise(self.advertise)
        if MEMBERSHIP not in self.chosen_profile.services:
            _check_alone(self)
        _check_journal(self.journal, self.journal_payloads or self.journal_fsync)
        _check_state(self.state)
        _check_on_merge(self.on_merge, self.chosen_profile)
        _check_hints(self)
        _check_events(self.events, self.state)
        if self.name is not None:
            checked_name(self.name, "member")
        _check_min_members(self.min_members)
        _check_expect(self.expect, self.chosen_profile, self.sources)
        _ = self.limits  # raises for a wrong value
        _ = self.sources, self.folder, self.late_folder  # relative paths count from the folder that is current now

    @cached_property
    def chosen_profile(self) -> Profile:
        """The profile with this name."""
        return profile_named(self.profile)

    @property
    def journal_name(self) -> str:
        """The name of the group in journals: "-" for a process without a group."""
        return NO_GROUP.strip() if self.group is None else self.group

    @cached_property
    def greeting(self) -> str:
        """The text for the group in a hello: its name, or the properties that two processes without a group share."""
        if self.group is not None:
            return self.group
        profile = self.chosen_profile
        return NO_GROUP + fingerprint(profile.name, profile.stack_name(), self.limits.fingerprint())

    @cached_property
    def carrier(self) -> Transport:
        """The transport that `transport` describes, or that of the profile."""
        return parse_transport(self.chosen_profile.transport if self.transport is None else self.transport)

    @cached_property
    def sources(self) -> DiscoverySources:
        """The sources in which members find each other."""
        return parse_discovery(self.discovery, insecure=self.leaves_machine)

    @cached_property
    def secret_file(self) -> SecretFile | None:
        """The file of the secret, if `secret` is a path."""
        if not isinstance(self.secret, os.PathLike):
            return None
        return SecretFile(absolute(self.secret, f"secret={self.secret!r}"))

    @cached_property
    def keys(self) -> Secret | None:
        """The keys of the group; None: frames are not sealed."""
        if self.secret is None:
            return None
        check_available()
        return self.secret_file.secret if self.secret_file is not None else _given_keys(self.secret)

    @property
    def leaves_machine(self) -> bool:
        """Whether other machines may be reached, and may reach this process."""
        return self.insecure or self.secret is not None

    @cached_property
    def limits(self) -> Limits:
        """The limits and timeouts of this member, over this transport."""
        services = self.chosen_profile.services
        parts = 1 if GOSSIP in services else PARTS  # what a member misses there is a share of the runs that are lost
        limits = self.carrier.limits(_limits(self.config), parts)
        if ANY_SIZE not in services:
            limits = msgspec.structs.replace(limits, payload_max=limits.run_bytes)
        return limits

    @property
    def leaves_without_journal(self) -> bool:
        """Whether the member leaves its group when its journal cannot be written.  Where a majority decides, the member
        always leaves, because no later process could answer for a member with an incomplete journal."""
        return PRIMARY in self.chosen_profile.services or (
            isinstance(self.config, Config) and self.config.on_journal_lost == "leave"
        )

    @cached_property
    def folder(self) -> Path | None:
        """The folder of the journal, as an absolute path."""
        return None if self.journal is None else absolute(self.journal, f"journal={self.journal!r}")

    @property
    def takes_name(self) -> bool:
        """Whether the member takes its name from the folder of its journal.  Only in a group of one machine a process
        sees there that the whole group has ended, and that nobody has to answer for a former member."""
        needed = PRIMARY in self.chosen_profile.services and not self.sources.asks
        return needed and self.name is None and self.folder is not None

    @cached_property
    def late_folder(self) -> Path | None:
        """The folder of a late-join handler for the messages of this group, as an absolute path."""
        given = self.config.late_join_handler if isinstance(self.config, Config) else False
        if isinstance(given, bool):
            return None
        return absolute(given, f"config late_join_handler={given!r}") / self.journal_name

    def named(self, name: str) -> Options:
        """The same options with this name, and with the same folders after a change of the current folder."""
        options = copy(self)
        object.__setattr__(options, "name", name)  # the copy is not shared yet
        return options


def with_parameters_of(
    make: Callable[Given, Made],
) -> Callable[[Callable[[Taker, Made], None]], Callable[Concatenate[Taker, Given], None]]:
    """Turn an `__init__` that takes what `make` returns into one that has the parameters of `make`."""

    def decorate(init: Callable[[Taker, Made], None]) -> Callable[Concatenate[Taker, Given], None]:
        of_make = signature(make)

        def taking(taker: Taker, /, *args: Given.args, **named: Given.kwargs) -> None:
            _check_names(type(taker).__name__, of_make, args, named)
            init(taker, make(*args, **named))

        first = Parameter("self", Parameter.POSITIONAL_ONLY)
        shown = Signature([first, *of_make.parameters.values()])
        setattr(update_wrapper(taking, init), "__signature__", shown)  # noqa: B010 (mypy knows no such attribute)
        return taking

    return decorate


def made(kind: str, make: Callable[..., Made], *args: object, **named: object) -> Made:
    """What `make` returns.  Raises UsageError for an argument that it does not have; `kind` takes the options."""
    _check_names(kind, signature(make), args, named)
    return make(*args, **named)


def _check_names(kind: str, of_make: Signature, args: tuple[object, ...], named: dict[str, object]) -> None:
    """Raise UsageError for an argument that no option takes, and without the group."""
    options = [name for name in of_make.parameters if name != "group"]
    for name in named:
        if name in UNBUILT:
            raise NotBuilt(f"{name}= is not built: {UNBUILT[name]}")
        if name not in of_make.parameters:
            from difflib import get_close_matches

            near = get_close_matches(name, options, 1)
            known = f"use {near[0]}=" if near else f"the options are {', '.join(options)}"
            raise UsageError(f"{kind}() has no option {name}=: {known}")
    if len(args) > 1:
        raise UsageError(f"{kind}() takes the group alone without a name: write each option with its name")
    if not args and "group" not in named:
        raise UsageError(f"{kind}() needs a group: give it a name, for instance {kind}('orders')")


def _given_keys(secret: object) -> Secret:
    """The keys in the option itself.  No message shows a part of it."""
    if isinstance(secret, bytes):
        return Secret(ring_of_bytes(secret))
    if isinstance(secret, str):
        return Secret(parse_ring(secret, "secret="))
    raise UsageError(
        f"secret= must be a path (pathlib.Path), random bytes, or the text of a file that `pygroups secret new` makes, "
        f"and is a {type(secret).__name__}"
    )


def _check_min_members(number: object) -> None:
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MEMBERS_MAX:
        raise UsageError(f"min_members={number!r} must be a number of members from 1 to {MEMBERS_MAX:,}")


def _check_expect(expect: object, profile: Profile, sources: DiscoverySources) -> None:
    """Without a folder, whose lock lets one process found the group, a majority needs the number of all processes."""
    if expect is None:
        if PRIMARY in profile.services and sources.asks:
            raise UsageError(
                f"profile {profile.name!r} over the network needs expect=, the number of all processes that may take "
                "part in the first view of the group"
            )
        return
    if PRIMARY not in profile.services:
        raise UsageError(
            f"expect= works only where a majority decides each view; profile {profile.name!r} is not such a profile: "
            "leave it out"
        )
    if isinstance(expect, bool) or not isinstance(expect, int) or not 1 <= expect <= MEMBERS_MAX:
        raise UsageError(f"expect={expect!r} must be a number of processes from 1 to {MEMBERS_MAX:,}")


def _check_alone(given: Options) -> None:
    """Raise UsageError for options that only a group has."""
    if given.carrier.to_all is not None:
        raise UsageError(f"profile {given.profile!r} sends to one process at a time: use transport 'tcp' or 'udp'")
    for name in ("discovery", "min_members", "state", "rejoin", "journal_payloads"):
        if getattr(given, name) not in (None, False):
            raise UsageError(f"{name}= needs a group, and profile {given.profile!r} has none: leave it out")


def _check_group(group: str | None, profile: Profile) -> None:
    if MEMBERSHIP not in profile.services:
        if group is not None:
            raise UsageError(f"profile {profile.name!r} has no group: write Channel(None, profile={profile.name!r})")
        return
    if group is None:
        raise UsageError(f"profile {profile.name!r} needs a group: give it a name, for instance Channel('orders')")
    checked_name(group, "group")


def _check_journal(journal: object, is_needed: bool) -> None:
    if journal is not None and not isinstance(journal, str | os.PathLike):
        raise UsageError(f"journal={journal!r} must be the path of a folder")
    if journal is not None and not os.fspath(journal):
        raise UsageError(
            f"journal={journal!r} names no folder: give the path of a folder ('.' is the current one), or leave it out"
        )
    if journal is None and is_needed:
        raise UsageError("journal_payloads and journal_fsync need journal=DIR, the folder to write to")


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


def _check_discovery(given: object) -> None:
    if given is None or isinstance(given, str):
        return
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise UsageError(f"discovery={given!r} must be text, or a list of texts, or left out")


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r} must be True or False")


def _check_state(state: object) -> None:
    if state is None:
        return
    sets = "set_state_chunks" if hasattr(state, "set_state_chunks") else "set_state"
    for name in ("get_state", sets):
        method = getattr(state, name, None)
        if not callable(method):
            raise UsageError(
                "state= needs an object with async methods get_state() and set_state(data), or set_state_chunks(chunks)"
            )
        if not (inspect.iscoroutinefunction(method) or (name == "get_state" and inspect.isasyncgenfunction(method))):
            raise UsageError(f"the {name} of state= must be a coroutine function: write it as `async def {name}`")


def _check_hints(given: Options) -> None:
    """Raise UsageError for options that need members who confirm what they have, in a profile where none does."""
    profile = given.chosen_profile
    if GOSSIP not in profile.services:
        if given.late_folder is not None:
            raise UsageError(
                f"config late_join_handler= names a folder for missed messages, and in profile {profile.name!r} no "
                "member hands such messages on: leave it out, or give state="
            )
        return
    if given.state is not None:
        raise UsageError(
            f"state= works only where the members agree on the messages before a view, and profile {profile.name!r} "
            "has no such views: leave it out, and let a program that joins ask a member for its state"
        )
    if _limits(given.config).slow_exclude < NEVER:
        raise UsageError(
            f"config slow_policy='exclude' works only where a sender waits for its readers, and in profile "
            f"{profile.name!r} none does: leave it out"
        )


def _check_on_merge(on_merge: object, profile: Profile) -> None:
    if on_merge == KEEP:
        return
    if MERGING not in profile.services:
        raise UsageError(
            f"on_merge= works only where views merge, and profile {profile.name!r} merges no views: leave it out"
        )
    if STATE_AT_VIEW not in profile.services:
        raise UsageError(
            f"on_merge= chooses the side whose state all take, and profile {profile.name!r} transfers no state: "
            "leave it out"
        )
    if isinstance(on_merge, str) or not callable(on_merge):
        known = "use 'keep', 'primary', or a function of the sides that returns one of them"
        if on_merge != PRIMARY_SIDE:
            raise UsageError(f"on_merge={on_merge!r} is not known: {known}")
    elif inspect.iscoroutinefunction(on_merge):
        raise UsageError("the function on_merge= must not be a coroutine function: write it as `def`")


def _limits(config: Config | Limits | None) -> Limits:
    if isinstance(config, Config):
        return config.limits()
    if config is not None and not isinstance(config, Limits):
        raise UsageError(f"config= needs a pygroups.Config, not {type(config).__name__}")
    return config or Limits()


def default_name() -> str:
    """A unique name: host and process id, and from the second channel of the process on also the channel's number.  A
    small process id gets random characters: it is one of a container, and the same in other containers of the host."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:40] or "host"
    number = next(_lives)
    drawn = f"-{secrets.token_hex(3)}" if os.getpid() < PIDS_OF_CONTAINERS else ""
    return f"{host}-{os.getpid()}{drawn}" + (f"-{number}" if number > 1 else "")


def boot_id() -> str:
    """The id of this machine's boot: monotonic clocks are comparable only within one boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # another system, or no descriptor is left
        return "unknown"
