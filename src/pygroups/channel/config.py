"""The limits and timeouts that a program may set.  Sizes are in bytes, times in seconds."""

from __future__ import annotations

import os
from typing import Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLION, SECOND
from pygroups.core.limits import Config as Limits

SIZES: Final = (
    "payload_max",
    "run_bytes",
    "window",
    "queue_max",
    "spill_after",
    "datagram",
    "link_bytes",
    "journal_segment",
)
TIMES: Final = (
    "heartbeat",
    "heartbeat_timeout",
    "verify_timeout",
    "leave_timeout",
    "state_timeout",
    "connect_timeout",
    "stats_period",
)
LONGEST: Final = 86_400.0  # seconds; a larger number was meant in another unit
CHOICES: Final = {"on_journal_lost": ("continue", "leave"), "slow_policy": ("wait", "exclude")}
_DEFAULT: Final = Limits()


def _seconds(name: str) -> float:
    micros: int = getattr(_DEFAULT, name)
    return micros / SECOND


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and timeouts of one member.  Sizes are in bytes, times in seconds.

    All members of a group need equal `payload_max`, `run_bytes` and `window`; the group refuses a member with other
    values.
    `internal`: the limits of the layers and drivers, with times in microseconds.  These limits are not part of
    the public interface, and can change with each version.  Raises UsageError for invalid values, and for values that
    contradict each other.
    """

    payload_max: int = _DEFAULT.payload_max  # the largest payload
    run_bytes: int = _DEFAULT.run_bytes  # of messages that travel as one; a larger payload travels in pieces
    window: int = _DEFAULT.window  # the most unread own messages; when it is full, `send` waits
    queue_max: int = _DEFAULT.queue_max  # the most unread events while the reading task waits in `send`
    spill_after: int = _DEFAULT.spill_after  # the most bytes in memory while a state arrives; more goes to disk
    datagram: int = _DEFAULT.datagram  # over UDP: the largest packet, without the headers of IP and UDP
    link_bytes: int = _DEFAULT.link_bytes  # the most data queued for a connection; more is dropped and sent again later
    heartbeat: float = _seconds("heartbeat")  # time between two heartbeats
    heartbeat_timeout: float = _seconds("heartbeat_timeout")  # time without a heartbeat before a member is probed
    verify_timeout: float = _seconds("verify_timeout")  # time for the answer to a probe before a member is suspected
    leave_timeout: float = _seconds("leave_timeout")  # time for an orderly leave
    state_timeout: float = _seconds("state_timeout")  # time for get_state() before another member gives its state
    connect_timeout: float = _seconds("connect_timeout")  # time until a new connection is established and answered
    stats_period: float = _seconds("stats_period")  # time between two `stats` records in the journal
    journal_segment: int = _DEFAULT.journal_segment  # the size of a file of the journal, after which a new one begins
    journal_keep: int | None = None  # the number of files that the journal keeps; None: all
    on_journal_lost: str = "continue"  # without a journal, or "leave" the group
    slow_policy: str = "wait"  # for a member that reads nothing, or "exclude" it after `slow_timeout`
    slow_timeout: float = 30.0  # time without progress in a full window; `slow_policy` applies after it
    gossip_interval: float | None = None  # profile `gossip`: time between two gossips of a member, with dynamic=False
    dynamic: bool = True  # the time to the next gossip is drawn, from 0 to 2 * desired_avg_gossip * members
    desired_avg_gossip: float = _seconds("desired_avg_gossip")  # time between two gossips that a member receives
    use_mcast_for_gossip: bool = False  # each gossip goes to all members at once, and not to a random subset
    subset: float = 0.3  # the share of the members that get a gossip from one member, of at most four members
    lag: int = _DEFAULT.lag  # messages of each sender that are kept although all members have them
    late_join_handler: bool | str | os.PathLike[str] = False  # this member keeps messages longer, for members that come
    # late or come back: True in memory, the path of a folder also there, for the next process that is given this folder
    catch_up: bool = False  # when it joins, this member begins with the messages that others still hold
    gossip_rate: int = _DEFAULT.gossip_rate  # the most bytes a second that this member sends to all
    epsilon: float = 0.01  # the share of messages that members may miss; the audit judges it (promise `epsilon`)
    internal: Limits = _DEFAULT

    def __post_init__(self) -> None:
        for name in (*TIMES, "slow_timeout", "desired_avg_gossip"):
            _check_time(name, getattr(self, name))
        if self.heartbeat >= self.heartbeat_timeout:
            raise UsageError(
                f"config heartbeat={self.heartbeat:g} must be less than heartbeat_timeout={self.heartbeat_timeout:g}: "
                "a member would be suspected between two of its heartbeats"
            )
        if not isinstance(self.internal, Limits):
            raise UsageError("config internal= needs a pygroups.core.limits.Config")
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                one, other = words
                raise UsageError(f"config {name}={getattr(self, name)!r} is not known: use {one!r} or {other!r}")
        self._check_gossip()
        limits = self.limits()
        if limits.link_bytes < limits.window:
            raise UsageError(f"config link_bytes={self.link_bytes:,} must be at least window={self.window:,}")

    def _check_gossip(self) -> None:
        for name in ("dynamic", "use_mcast_for_gossip", "catch_up"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"config {name}={getattr(self, name)!r} must be True or False")
        late = self.late_join_handler
        if not isinstance(late, bool | str | os.PathLike) or late == "":
            raise UsageError(f"config late_join_handler={late!r} must be True, False, or the path of a folder")
        share = self.subset
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.001 <= share <= 1:
            raise UsageError(f"config subset={share!r} must be a share of the members, from 0.001 to 1")
        share = self.epsilon
        if isinstance(share, bool) or not isinstance(share, int | float) or not 1 / MILLION <= share <= 1:
            raise UsageError(f"config epsilon={share!r} must be a share of the messages, from 0.000001 to 1")
        if self.gossip_interval is not None:
            _check_time("gossip_interval", self.gossip_interval)
            if self.dynamic:
                raise UsageError(
                    f"config gossip_interval={self.gossip_interval:g} has no effect with dynamic=True: give "
                    "dynamic=False, or desired_avg_gossip="
                )
        elif not self.dynamic:
            raise UsageError("config dynamic=False needs gossip_interval=, the seconds between two gossips of a member")

    def __repr__(self) -> str:
        """Only the fields that differ from the defaults, so that the few given values are visible."""
        return f"Config({_changed(self)})"

    def limits(self) -> Limits:
        """The same limits for the layers and drivers, with times in whole microseconds."""
        sizes = {name: getattr(self, name) for name in SIZES}
        times = {name: round(getattr(self, name) * SECOND) for name in TIMES}
        excludes = self.slow_policy == "exclude"
        slow = round(self.slow_timeout * SECOND) if excludes else self.internal.slow_exclude
        keep = self.internal.journal_keep if self.journal_keep is None else self.journal_keep
        return msgspec.structs.replace(
            self.internal, **sizes, **times, **self._gossip(), journal_keep=keep, slow_exclude=slow
        )

    def _gossip(self) -> dict[str, int]:
        """The fields that only the profile `gossip` uses, as they differ from `internal`."""
        given = {
            "subset": round(self.subset * 1_000),
            "lag": self.lag,
            "epsilon_ppm": round(self.epsilon * MILLION),
            "gossip_rate": self.gossip_rate,
            "use_mcast_for_gossip": int(self.use_mcast_for_gossip),
            "late_join_handler": int(self.late_join_handler is not False),
            "catch_up": int(self.catch_up),
            "desired_avg_gossip": round(self.desired_avg_gossip * SECOND),
        }
        if self.gossip_interval is not None:
            given["gossip_interval"] = round(self.gossip_interval * SECOND)
        return {name: value for name, value in given.items() if value != getattr(_DEFAULT, name)}


def _changed(config: Config | Limits) -> str:
    """The fields of `config` that differ from the defaults, as arguments."""
    values = {field.name: (getattr(config, field.name), field.default) for field in msgspec.structs.fields(config)}
    return ", ".join([f"{name}={_shown(value)}" for name, (value, default) in values.items() if value != default])


def _shown(value: object) -> str:
    return f"limits.Config({_changed(value)})" if isinstance(value, Limits) else repr(value)


def _check_time(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"config {name}={value!r} must be a number of seconds")
    if not 1 / SECOND <= value <= LONGEST:
        raise UsageError(
            f"config {name}={value!r} must be in seconds, more than 0 and at most {LONGEST:,.0f} (a day); "
            "for microseconds divide by 1,000,000"
        )
