"""Every limit and every time-out of a member, by name.  Sizes are in bytes, times in microseconds."""

from __future__ import annotations

from typing import Final

import msgspec

from .errors import UsageError

# -- limits of the wire: the same for everybody, part of the wire version

FRAME_MAX: Final = 16 << 20  # one frame, header included
FRAME_FILL: Final = 128 << 10  # a frame that has reached this takes no further run: it fits what is read at once
BODY_MAX: Final = 128 << 10  # one run's body: a full run and its lengths
RUN_MESSAGES_MAX: Final = 1 << 16
RUNS_PER_FRAME_MAX: Final = 1 << 12  # as small as they may be: a run of no bytes costs a few hundred here
HEADS_MAX: Final = 32  # on one run
MEMBERS_MAX: Final = 1_024
MARKS_MAX: Final = 150_000  # origins in one digest: with the longest names they still fit a frame
READ_REQUESTS_MAX: Final = 16  # of one sender, for what is to be read; a later one then replaces the last
SLOWEST_MAX: Final = 4  # of the members that hold up a window, those that its sender is told of
XMIT_RANGES_MAX: Final = 48  # in one request for missing runs, so that it fits a datagram
TEXT_MAX: Final = 255  # contacts, reasons, profiles
ENTRY_BYTES: Final = 5  # what msgpack adds to a payload at most
HELLO_MAX: Final = 8 << 10  # what a connection may send before it has said who it is

MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What one member does, with defaults that fit one machine.  The fields under "must agree" are part of the
    fingerprint: a joiner whose values differ is refused."""

    # must agree
    run_bytes: int = 64 << 10  # a run is full at this size; also the largest payload
    window: int = 1 << 20  # own multicasts that not all others have consumed; to one member, those that it has not

    # this member's own
    runs_in_flight: int = 4  # a run stays open while so many own runs are on their way
    queue_max: int = 64 << 20  # unread events before a reader that waits in its own send is refused
    heartbeat: int = 1 * SECOND
    heartbeat_timeout: int = 5 * SECOND
    lateness: int = 20 * MILLISECOND  # of the member's own timers; above it the member extends its timeouts
    verify_timeout: int = 1 * SECOND  # how long a silent member has to answer before it is suspected
    unicast_period: int = 20 * MILLISECOND  # between two rounds of asking, reporting and repeating
    unicast_ack_runs: int = 32  # received runs before an acknowledgement that does not wait for the round
    unicast_backoff_max: int = 1 * SECOND
    unicast_early_max: int = 4_096  # runs kept beyond a hole, per lane
    unicast_request_runs: int = 64  # runs asked for, and sent again, at once, per lane
    unicast_peers_max: int = 4_096  # peers with a connection
    tombstone: int = 60 * SECOND  # how long a forgotten connection's end is remembered
    tombstones_max: int = 4_096  # peers whose forgotten connection's end is remembered
    connection_age: int = 30 * SECOND  # an outsider that answers nothing for so long is forgotten
    nakack_period: int = 20 * MILLISECOND
    nakack_backoff_max: int = 500 * MILLISECOND
    nakack_early_max: int = 16_384  # runs kept beyond a hole, per stream
    nakack_request_runs: int = 64  # runs asked for at once, per stream
    announce_max: int = 2 * SECOND  # the longest pause between announcements; after it they cease
    stable_bytes: int = 128 << 10  # consumed or delivered before a vote that does not wait for the period
    stable_runs: int = 2  # of one origin before a vote after stable_pause; with an ordering layer four times as many
    stable_pause: int = 5 * MILLISECOND  # between two votes that only runs make urgent
    stable_combine: int = 1 * MILLISECOND  # between two stability messages, unless all have voted in between
    stable_quiet: int = 200 * MILLISECOND  # the same while no vote was urgent
    stable_period: int = 200 * MILLISECOND  # the longest pause between votes that are not urgent; the shortest is half
    stable_backoff_max: int = 1 * SECOND  # between two votes that repeat what was said
    stable_suspend_max: int = 60 * SECOND  # a suspension ends by itself
    future_runs_max: int = 4_096  # runs of a view that is not installed yet; of one sender to be ordered, a quarter
    future_bytes: int = 16 << 20  # of those that wait to be ordered; of one sender a quarter
    join_retry: int = 300 * MILLISECOND
    batch: int = 20 * MILLISECOND  # joins and leaves that come within this make one view
    views_per_second: int = 2  # for joins and leaves; a proven suspicion waits for nothing
    ready_timeout: int = 400 * MILLISECOND  # for an answer to Ready while somebody is suspected; asked twice
    flush_timeout: int = 1 * SECOND  # for any other answer in a view change; doubles with each that came too late
    patience_max: int = 30 * SECOND  # the longest that flush_timeout grows to
    leave_timeout: int = 5 * SECOND
    marks_max: int = 100_000  # origins outside the view that are remembered
    state_chunk: int = 48 << 10  # one piece of a state on the wire
    state_chunks_ahead: int = 16  # unacknowledged pieces of a state
    state_timeout: int = 30 * SECOND  # for a provider that has said nothing
    connect_timeout: int = 1 * SECOND  # for a connection to be made and answered
    reconnect_min: int = 20 * MILLISECOND  # before a peer that gave no answer is dialed again; doubles
    reconnect_max: int = 1 * SECOND
    probe_tries: int = 20  # for a peer that takes connections and ends them unanswered, as a dying process does
    link_bytes: int = 64 << 20  # unsent frames for one peer; what comes beyond is dropped, and repaired later
    contacts_max: int = 4_096  # where peers listen, remembered
    strangers: int = 64  # connections that have not said who they are
    stranger_timeout: int = 5 * SECOND  # for them to say it
    guests: int = 256  # connections of peers outside the view; one that comes beyond closes the one silent longest
    guest_timeout: int = 30 * SECOND  # a connection of such a peer that brings nothing for so long is closed
    receive_bytes: int = 32 << 20  # beginnings of frames that have not come whole yet, of all connections together
    directory_period: int = 200 * MILLISECOND  # between two looks whether the own entry is still there
    lock_retry: int = 20 * MILLISECOND  # while another process is founding the group
    stats_period: int = 60 * SECOND  # between two `stats` records

    def fingerprint(self) -> str:
        """What two members of one group must have in common."""
        return f"run_bytes={self.run_bytes} window={self.window}"

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise UsageError(f"config {name}={value!r} must be a positive whole number")
        if self.run_bytes > BODY_MAX // 2:
            raise UsageError(f"config run_bytes={self.run_bytes} is above the wire's limit of {BODY_MAX // 2}")
        if self.state_chunk > BODY_MAX // 2:
            raise UsageError(f"config state_chunk={self.state_chunk} is above the wire's limit of {BODY_MAX // 2}")
        if self.marks_max > MARKS_MAX - MEMBERS_MAX:
            raise UsageError(f"config marks_max={self.marks_max} is above the limit of {MARKS_MAX - MEMBERS_MAX}")
        if self.window < self.run_bytes:
            raise UsageError(f"config window={self.window} holds no full run (run_bytes={self.run_bytes})")
