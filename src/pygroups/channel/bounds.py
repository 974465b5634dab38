"""The limits of a member's tables by name, their fill levels, and the most memory that they can take.

tables.py names the limit of each table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pygroups.core.limits import (
    COUNTERS_MAX,
    FRAME_MAX,
    GAPS_MAX,
    MEMBERS_MAX,
    READ_REQUESTS_MAX,
    RUN_COST,
    RUN_MESSAGES_MAX,
    SLOWEST_MAX,
    UNREAD_EVENTS_MAX,
    WINDOW_RUNS,
    Config,
)
from pygroups.drivers.discovery.network import OPEN_MAX
from pygroups.drivers.discovery.options import LISTED_MAX
from pygroups.drivers.rate_limited import KINDS_MAX
from pygroups.drivers.tcp.door import READ_BYTES
from pygroups.drivers.tcp.tcp import QUESTIONS_MAX
from pygroups.drivers.udp.datagrams import PARTS_MAX, UNFINISHED_COST
from pygroups.drivers.udp.questions import OPEN_MAX as SEARCHES_MAX
from pygroups.drivers.udp.sockets import DATAGRAM_READ
from pygroups.layers.fragmentation.pieces_in import OUTSIDERS_MAX
from pygroups.layers.gms.decisions.answer_times import ASKED_MAX
from pygroups.layers.gms.decisions.electors import ELECTORS_MAX
from pygroups.layers.gms.member.other_views import FORMER_MAX, PAST_MAX
from pygroups.layers.streams.gaps import LACKS_MAX, MISSING_MAX

from .layer_tables import LAYER
from .sending.receipts import LOST_MAX
from .tables import TABLES

FIXED: Final = 256  # the most entries of a table that the program's structure fills: layers, types of heads
ENTRY_COST: Final = 256  # the most memory of an entry that is a mark, a time or a contact, without its key's text
NUMBER_COST: Final = 40  # of a number in a list
MARK_TABLES: Final = 10  # FLUSH, SEQUENCER, STABLE, STATE_TRANSFER, the installation that is kept, and as much for
# the ranges of missing messages in FLUSH
PEER_TABLES: Final = 10  # of UNICAST2, FLOW_CONTROL, FAILURE, the top, and the contacts
OTHER: Final = 4 << 20  # counters, warnings, membership, earlier views
LENGTH_BYTES: Final = 4  # before each frame in a stream of bytes


def limits(config: Config, members: int) -> dict[str, int | None]:
    """The value of each limit that tables.py names, for a view of `members`.  None: the program decides, because each
    entry is one of its own calls that has not returned."""
    return {"calls": None} | _of_members(config, members) | _of_runs(config, members) | _of_bytes(config) | CONSTANTS


CONSTANTS: Final[dict[str, int | None]] = {
    "nothing": 0,
    "turn": 0,  # emptied before the turn ends
    "fixed": FIXED,
    "members_max": MEMBERS_MAX,
    "known": 2 * MEMBERS_MAX,  # members of the view, and processes outside
    "gaps": GAPS_MAX,
    "missing": MISSING_MAX,
    "lacks": LACKS_MAX,
    "views": MEMBERS_MAX,
    "found": 2 * MEMBERS_MAX,
    "electors": ELECTORS_MAX,
    "slowest": SLOWEST_MAX,
    "asked": ASKED_MAX,
    "past": PAST_MAX,
    "former": FORMER_MAX,
    "read_requests": READ_REQUESTS_MAX,
    "lost": LOST_MAX,
    "counters": COUNTERS_MAX,
    "kinds": KINDS_MAX,
    "run_messages": RUN_MESSAGES_MAX,
    "parts": PARTS_MAX,
    "questions": QUESTIONS_MAX,
    "searches": SEARCHES_MAX,
    "open": OPEN_MAX + 1,
    "listed": LISTED_MAX,
}


def _of_members(config: Config, members: int) -> dict[str, int | None]:
    """Limits that count members, peers and other processes."""
    peers = config.unicast_peers_max + members
    return {
        "members": members,
        "one_more": members + 1,
        "outsiders_too": MEMBERS_MAX + members,
        "pairs": members * members,
        "peers": peers,
        "peers_of_both_sides": peers + config.unicast_peers_max,
        "unicast_peers_max": config.unicast_peers_max,
        "tombstones_max": config.tombstones_max,
        "marks": config.marks_max + members,
        "contacts": config.contacts_max + MEMBERS_MAX,
        "connections": config.contacts_max + MEMBERS_MAX,
        "strangers": config.strangers,
        "segments": config.journal_keep + 1,
        "views_per_second": config.views_per_second,
        "later": MEMBERS_MAX + 4 * members,
        "incoming": 2 * members + OUTSIDERS_MAX,
    }


def _of_runs(config: Config, members: int) -> dict[str, int | None]:
    """Limits that count runs, and pieces of large payloads."""
    pieces = -(-config.payload_max // config.run_bytes)
    window_runs = WINDOW_RUNS + pieces
    stream_runs = members * window_runs + config.nakack_early_max
    lane_runs = window_runs * (1 + members) + config.state_chunks_ahead
    return {
        "window_runs": window_runs,
        "stream_runs": stream_runs,
        "stream_runs_of_all": members * stream_runs,
        "lane_runs": lane_runs,
        "lane_runs_of_all": (config.unicast_peers_max + members) * lane_runs,
        "answers": 2 * members * config.nakack_answer_runs,
        "future_runs_max": config.future_runs_max,
        "unicast_early_max": config.unicast_early_max,
        "state_chunks": config.state_chunks_ahead + 2,
        "unread": 2 * members * window_runs + config.queue_max // RUN_COST + UNREAD_EVENTS_MAX,
        "pieces": pieces + 1,
    }


def _of_bytes(config: Config) -> dict[str, int | None]:
    """Limits that count bytes, or follow from a limit of bytes."""
    return {
        "payload_max": config.payload_max,
        "piece": config.run_bytes + 16,
        "frame": FRAME_MAX + LENGTH_BYTES,
        "link_frames": config.link_bytes // LENGTH_BYTES,
        "read": READ_BYTES,
        "datagram_read": DATAGRAM_READ,
        "unfinished": config.receive_bytes // UNFINISHED_COST,
    }


def memory(config: Config, members: int) -> dict[str, int]:
    """The most bytes that each kind of thing can take at one member, in a view of `members`.

    A *window* is the unread multicasts of one member: its bytes, and the cost of its runs.  Bodies that several layers
    keep are counted for each of them, although these layers share the bytes.
    """
    window = config.window + config.run_bytes + WINDOW_RUNS * RUN_COST
    everybody = members * window
    later = config.future_bytes + config.future_runs_max * RUN_COST
    large = config.payload_max if config.payload_max > config.run_bytes else 0
    marks = config.marks_max + members
    return {
        "kept for retransmission": everybody,
        "held back by a view change": 2 * everybody,  # in FLUSH, and in STABLE
        "waiting for their order": everybody + window,  # at the coordinator; own multicasts in the forward-table
        "of later views": 2 * later,  # in NAKACK, and in SEQUENCER
        "to single members": 2 * everybody,  # sent and not acknowledged; received before an earlier one
        "unread": 2 * everybody + config.queue_max,  # multicasts and messages to this member alone
        "unread events": UNREAD_EVENTS_MAX * (RUN_COST + members * ENTRY_COST),
        "large payloads": (6 + 2) * members * large,  # in pieces, joined, and read; own ones to all and to each
        "queues of connections": (members + 1) * 2 * config.link_bytes,  # each frame is an object; all guests as one
        "incomplete frames": config.receive_bytes + READ_BYTES,
        "parts of a state": (config.state_chunks_ahead + 2) * (config.state_chunk + RUN_COST) * members,
        "a state that arrives": 2 * config.spill_after,  # its parts, and the messages behind it; more is on disk
        "marks of origins": MARK_TABLES * marks * ENTRY_COST,
        "votes": 6 * members * members * NUMBER_COST,
        "peers": PEER_TABLES * (config.unicast_peers_max + config.contacts_max + members) * ENTRY_COST,
        "other tables": OTHER,
    }


def memory_bound(config: Config, members: int) -> int:
    """The most bytes that a member can take in a view of `members`, beside the interpreter and the program."""
    return sum(memory(config, members).values())


def roots(session: Any) -> dict[str, Any]:
    """The objects at which the paths of tables.py begin."""
    member = session.member
    parts = {type(layer).__name__.lower(): layer for layer in member.stack.layers}
    parts |= {"stack": member.stack, "env": member.stack.env, "session": session, "network": session.network}
    return parts | {"directory": session.directory, "journal": member.journal}


def crowd(session: Any) -> int:
    """The number of processes whose windows this process keeps, and this process itself.  These are the members of the
    view, or without a group the processes that have a connection with this one."""
    if session.view is not None:
        return len(session.view.members)
    unicast = roots(session)["unicast2"]
    return 1 + len(unicast.sending.connections.keys() | unicast.receiving.connections.keys())


def tables(session: Any, config: Config, members: int) -> dict[str, dict[str, int | None]]:
    """Per existing table the `size` of the fullest container at the path of the table, and the `limit`."""
    values, found = limits(config, members), {}
    begins = roots(session)
    for path, limit in rows(begins):
        sizes = list(_sizes(begins, path))
        if sizes:
            found[path] = {"size": max(sizes), "limit": values[limit]}
    return found


def rows(begins: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The paths with their limits; the rows of LAYER are repeated for each layer."""
    for name, part in begins.items():
        if hasattr(part, "above"):
            yield from ((f"{name}.{attribute}", limit) for attribute, limit in LAYER.items())
    yield from TABLES.items()


def _sizes(begins: Mapping[str, object], path: str) -> Iterator[int]:
    """The sizes of all containers at `path`."""
    things: list[Any] = [begins]
    for step in path.replace("[]", ".[]").split("."):
        things = [part for thing in things for part in _step(thing, step)]
    for thing in things:
        if isinstance(thing, memoryview):
            yield thing.nbytes
        elif hasattr(thing, "__len__"):
            yield len(thing)


def _step(thing: Any, step: str) -> Iterator[Any]:
    if step == "[]":
        if isinstance(thing, Mapping):
            yield from thing.values()
        elif isinstance(thing, list | deque | tuple | set):
            yield from thing
    elif isinstance(thing, dict):
        if step in thing:
            yield thing[step]
    elif hasattr(thing, step):
        yield getattr(thing, step)
