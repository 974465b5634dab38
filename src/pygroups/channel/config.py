"""The limits and timeouts that a program may set.  Sizes are in bytes, times in seconds."""

from __future__ import annotations

from typing import Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND
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
    internal: Limits = _DEFAULT

    def __post_init__(self) -> None:
        for name in (*TIMES, "slow_timeout"):
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
        limits = self.limits()
        if limits.link_bytes < limits.window:
            raise UsageError(f"config link_bytes={self.link_bytes:,} must be at least window={self.window:,}")

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
        return msgspec.structs.replace(self.internal, **sizes, **times, journal_keep=keep, slow_exclude=slow)


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
