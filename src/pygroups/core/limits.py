"""Every limit and every timeout of a member, by name.  Sizes are in bytes, times in microseconds."""

from __future__ import annotations

from typing import Final

import msgspec

from .errors import UsageError

# -- limits of the wire: equal at all members, part of the wire version

FRAME_MAX: Final = 4 << 20  # one frame, header included
FRAME_FILL: Final = 128 << 10  # a frame of this size takes no further run, so that one read can receive it
BODY_MAX: Final = 512 << 10  # the body of one run: a full run that has grown, and its length fields
RUN_MESSAGES_MAX: Final = 1 << 16
RUNS_PER_FRAME_MAX: Final = 1 << 12  # bounds the memory of a frame: even an empty run costs some hundred bytes
HEADS_MAX: Final = 32  # on one run
MEMBERS_MAX: Final = 1_024
MARKS_MAX: Final = 16_000  # origins in one digest: the digests of both sides of a merge fit into a frame
READ_REQUESTS_MAX: Final = 16  # open read requests of one sender; a further request replaces the last one
SLOWEST_MAX: Final = 4  # members named to a sender as those that keep its window full
GAPS_MAX: Final = 256  # gaps of one origin that are remembered: one for each merge
XMIT_RANGES_MAX: Final = 48  # ranges in one request for missing runs, so that the request fits into a datagram
TEXT_MAX: Final = 255  # length of contacts and reasons
FINGERPRINT_MAX: Final = 1_024  # length of a fingerprint; with the largest limits `total` needs 294
DETAIL_MAX: Final = 4_096  # length of the text of a refusal, which may name both fingerprints
LIMIT_MAX: Final = 1 << 62  # the largest value of a limit in Config
COUNTERS_MAX: Final = 512  # names of counters of one member; further ones are counted together
UNREAD_EVENTS_MAX: Final = 10_000  # unread events of a program that are no messages; beyond, its channel ends
LATE_BUFFER: Final = 64 << 20  # bytes of the delivered runs that a late-join handler keeps
WINDOW_RUNS: Final = 4_096  # runs in one window: even an empty run costs memory
RUN_COST: Final = 1 << 10  # the most memory that one kept run takes beside its body
ENTRY_BYTES: Final = 5  # the most bytes that msgpack adds to a payload
REPLAY_WINDOW: Final = 8_192  # frames of one sender, below the newest, of which each is accepted once
HELLO_MAX: Final = 8 << 10  # bytes that a connection may send before its peer has identified itself

FLAGS: Final = ("use_mcast_for_gossip", "late_join_handler", "catch_up")  # limits that are 0 or 1

MILLION: Final = 1_000_000  # a share in millionths is a whole number
MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000

# -- times and sizes that are the same for all members and programs

PATIENCE_MAX: Final = 30 * SECOND  # the longest that flush_timeout grows to
REJOIN_WINDOW: Final = 60 * SECOND  # exclusions of one process within this time count as a row
REJOIN_PAUSE: Final = 1 * SECOND  # before the join after the second exclusion in a row; doubles with each further one
REJOIN_PAUSE_MAX: Final = 60 * SECOND
SPILL_MAX: Final = 4 << 30  # bytes on disk of the messages behind a state that arrives
STABLE_COMBINE: Final = 1 * MILLISECOND  # between two stability messages, unless all have voted in between
STABLE_QUIET: Final = 200 * MILLISECOND  # the same while no vote was urgent
LATENESS: Final = 20 * MILLISECOND  # of the member's own timers; above it the member extends its timeouts
UNICAST_PERIOD: Final = 20 * MILLISECOND  # between two rounds of requests, acknowledgements and retransmissions
UNICAST_ACK_LATE: Final = 100 * MILLISECOND  # for an acknowledgement that nobody needs sooner: no frame is lost unseen
UNICAST_PATIENCE: Final = 5 * SECOND  # for an acknowledgement, if the driver reports losses and reported none
DISCOVERY_TIMEOUT: Final = 400 * MILLISECOND  # silence after which no process is taken to be at a place


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The limits and timeouts of one member.  The defaults suit a group on one machine.

    The fields under "must agree" are part of the fingerprint: a group refuses a joiner that has other values.
    """

    # must agree
    run_bytes: int = 64 << 10  # a run is full at this size; a larger payload travels in pieces of this size
    payload_max: int = 64 << 20  # the largest payload
    heartbeat_all: int = 20  # members in a view in which each heartbeat goes to all others
    heartbeat_neighbors: int = 4  # in a larger view: members on each side, in the view's order, that get each heartbeat
    window: int = 1 << 20  # own multicasts that some other member has not consumed; per receiver the same for unicasts

    # each member for itself
    runs_in_flight: int = 4  # a new run stays open while so many own runs are in flight
    queue_max: int = 64 << 20  # unread events while the reading task waits in `send`; beyond, WouldDeadlock
    heartbeat: int = 1 * SECOND
    heartbeat_timeout: int = 5 * SECOND
    verify_timeout: int = 1 * SECOND  # how long a silent member has to answer before it is suspected
    unicast_ack_runs: int = 32  # received runs that cause an acknowledgement before the next round
    unicast_backoff_max: int = 1 * SECOND
    unicast_early_max: int = 4_096  # runs kept beyond a hole, per lane
    unicast_request_runs: int = 64  # runs requested or retransmitted at once, per lane
    unicast_peers_max: int = 4_096  # peers with a connection
    tombstone: int = 60 * SECOND  # time for which the end of a forgotten connection is remembered
    tombstones_max: int = 4_096  # peers for which such an end is remembered
    connection_age: int = 30 * SECOND  # silence after which a peer outside the view is forgotten
    nakack_period: int = 20 * MILLISECOND
    nakack_backoff_max: int = 500 * MILLISECOND
    nakack_early_max: int = 16_384  # runs kept beyond a hole, per stream
    nakack_request_runs: int = 64  # runs requested at once, per stream
    nakack_answer_runs: int = 512  # runs sent again to one asker within a period; it asks for the rest again
    nakack_answer_bytes: int = 4 << 20  # the same in bytes; one run is always sent
    announce_max: int = 2 * SECOND  # the longest pause between two announcements; then they end
    stable_bytes: int = 128 << 10  # consumed or delivered bytes that cause a vote at once
    stable_runs: int = 2  # runs of one origin that cause a vote after stable_pause, without an ordering layer
    stable_pause: int = 5 * MILLISECOND  # between two votes that only runs make urgent
    stable_period: int = 200 * MILLISECOND  # the longest pause between votes that are not urgent; the shortest is half
    stable_backoff_max: int = 1 * SECOND  # between two repetitions of a vote
    stable_suspend_max: int = 60 * SECOND  # a suspension ends after this time
    future_runs_max: int = 4_096  # runs of a view that is not installed yet; one sender: a quarter of the unordered
    future_bytes: int = 16 << 20  # bytes of runs that wait for their order; one sender: a quarter
    gossip_interval: int = 1 << 62  # between two gossips of a member; the default draws each pause from the next value
    desired_avg_gossip: int = 1 * SECOND  # between two gossips that a member receives, on average
    use_mcast_for_gossip: int = 0  # 1: each gossip goes to all members at once; 0: to a random subset
    subset: int = 300  # thousandths of the members that get a gossip from one member; never more than four members
    lag: int = 10  # messages of each sender that are kept although all members have them
    late_join_handler: int = 0  # 1: this member keeps messages for members that come late, longer: see layers/pbcast
    catch_up: int = 0  # 1: this member begins, when it joins, with the messages that others still hold
    gossip_keep: int = 30 * SECOND  # for which a delivered multicast is kept for others
    gossip_buffer: int = 8 << 20  # bytes of all multicasts that are kept for others, or wait for earlier ones
    gossip_early_max: int = 1_024  # runs kept beyond a hole, per origin
    gossip_cache: int = 4_096  # gossips that are remembered, so that each is handled once
    gossip_queue: int = 100  # gossips and requests that wait in one turn; messages come first
    gossip_retry: int = 200 * MILLISECOND  # before a message is requested from another member; doubles
    gossip_patience: int = 20 * SECOND  # after which a message that nobody sends is announced as a gap
    gossip_rate: int = 4 << 20  # own multicasts, in bytes a second
    gossip_burst: int = 256 << 10  # the same at once, after a pause
    epsilon_ppm: int = 10_000  # the largest share of messages that members miss, in millionths: the promise `epsilon`
    join_retry: int = 300 * MILLISECOND  # before a joiner asks again; then twice and four times as long
    batch: int = 20 * MILLISECOND  # joins and leaves within this time make one view
    views_per_second: int = 2  # view changes for joins and leaves; a proven suspicion does not wait
    ready_timeout: int = 400 * MILLISECOND  # for an answer to Ready while a member is suspected; Ready is sent twice
    flush_timeout: int = 1 * SECOND  # for any other answer in a view change; doubles with each late answer
    leave_timeout: int = 5 * SECOND
    merge_interval: int = 1 * SECOND  # between two questions to processes outside the view; 30 % more or less
    marks_max: int = 10_000  # remembered origins outside the view
    run_growth: int = 1  # a run of several payloads is full at so many times run_bytes while the network loses few runs
    run_bytes_lossy: int = 64 << 10  # a run is full at this size, if that is less, while the network loses many runs
    state_chunk: int = 48 << 10  # one piece of a state on the wire
    state_chunk_lossy: int = 48 << 10  # a piece has this size, if that is less, while the network loses many runs
    state_chunks_ahead: int = 16  # unacknowledged pieces of a state
    spill_after: int = 16 << 20  # bytes in memory of a state that arrives, and of the messages behind it; more on disk
    state_timeout: int = 30 * SECOND  # for a sign of life of the member that gives the state
    connect_timeout: int = 1 * SECOND  # for a connection to be established and answered
    reconnect_min: int = 20 * MILLISECOND  # before the next attempt to connect to a peer that did not answer; doubles
    reconnect_max: int = 1 * SECOND
    probe_tries: int = 20  # for a peer that accepts connections and closes them unanswered, as a dying process does
    link_bytes: int = 64 << 20  # unsent frames for one member, or for all peers outside the view; others are dropped
    datagram: int = 1_400  # over UDP: the largest packet, without the headers of IP and UDP
    socket_bytes: int = 4 << 20  # over UDP: the socket buffers that the member asks the system for
    contacts_max: int = 4_096  # remembered contacts of peers
    strangers: int = 256  # connections whose peers have not identified themselves
    stranger_timeout: int = 5 * SECOND  # for such a peer to identify itself
    guests: int = 256  # connections of peers outside the view; a further one closes the one that was silent longest
    guest_timeout: int = 30 * SECOND  # silence after which such a connection is closed
    receive_bytes: int = 32 << 20  # incomplete frames of all connections together
    directory_period: int = 200 * MILLISECOND  # between two checks that the member's own entry still exists
    lock_retry: int = 20 * MILLISECOND  # between two tries while another process founds the group
    slow_exclude: int = 1 << 62  # time without progress in a full window before its sender excludes members; never
    stats_period: int = 60 * SECOND  # between two `stats` records
    journal_segment: int = 64 << 20  # the size after which the journal begins a new file
    journal_keep: int = 1_000_000  # files that the journal keeps; the default is all that can have a name

    @property
    def run_bytes_min(self) -> int:
        """The bytes that a window counts for a smaller run, so that the window holds at most WINDOW_RUNS runs."""
        return -(-self.window // WINDOW_RUNS)

    def fingerprint(self) -> str:
        """The values that must be equal at all members of a group."""
        sizes = f"run_bytes={self.run_bytes} payload_max={self.payload_max} window={self.window}"
        return f"{sizes} heartbeat_all={self.heartbeat_all} heartbeat_neighbors={self.heartbeat_neighbors}"

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name in FLAGS:
                if isinstance(value, bool) or value not in (0, 1):
                    raise UsageError(f"config {name}={value!r} must be 0 or 1")
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise UsageError(f"config {name}={value!r} must be a positive whole number")
            if value > LIMIT_MAX:
                raise UsageError(f"config {name}={value!r} is above {LIMIT_MAX}")
        if self.run_bytes * self.run_growth > BODY_MAX // 2:
            grown = f"run_bytes={self.run_bytes}" + (f" times {self.run_growth}" if self.run_growth > 1 else "")
            raise UsageError(f"config {grown} is above the wire's limit of {BODY_MAX // 2}")
        if self.state_chunk > BODY_MAX // 2:
            raise UsageError(f"config state_chunk={self.state_chunk} is above the wire's limit of {BODY_MAX // 2}")
        if self.marks_max > MARKS_MAX - MEMBERS_MAX:
            raise UsageError(f"config marks_max={self.marks_max} is above the limit of {MARKS_MAX - MEMBERS_MAX}")
        if self.payload_max < self.run_bytes:
            raise UsageError(f"config payload_max={self.payload_max} is below run_bytes={self.run_bytes}")
        if self.window < self.run_bytes:
            raise UsageError(f"config window={self.window} holds no full run (run_bytes={self.run_bytes})")
