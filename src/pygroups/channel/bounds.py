"""The fill levels of a member's tables, and the most memory that they can take.  Each class names its tables and their
limits itself: see core/tables.py."""

from __future__ import annotations

from typing import Any, Final

from pygroups.core.limits import LATE_BUFFER, RUN_COST, UNREAD_EVENTS_MAX, WINDOW_RUNS, Config
from pygroups.core.tables import sizes, valued
from pygroups.drivers.tcp.door import READ_BYTES

ENTRY_COST: Final = 256  # the most memory of an entry that is a mark, a time or a contact, without its key's text
NUMBER_COST: Final = 40  # of a number in a list
MARK_TABLES: Final = 10  # FLUSH, SEQUENCER, STABLE, STATE_TRANSFER, the installation that is kept, and as much for
# the ranges of missing messages in FLUSH
PEER_TABLES: Final = 10  # of UNICAST2, FLOW_CONTROL, FAILURE, the top, and the contacts
OTHER: Final = 4 << 20  # counters, warnings, membership, earlier views


def memory(config: Config, members: int, *, gossips: bool = False) -> dict[str, int]:
    """The most bytes that each kind of thing can take at one member, in a view of `members`.

    A *window* is the unread multicasts of one member: its bytes, and the cost of its runs.  Bodies that several layers
    keep are counted for each of them, although these layers share the bytes.  With `gossips` the members keep messages
    for others, within limits of bytes.
    """
    window = config.window + config.run_bytes * config.run_growth + WINDOW_RUNS * RUN_COST
    everybody = members * window
    later = config.future_bytes + config.future_runs_max * RUN_COST
    large = config.payload_max if config.payload_max > config.run_bytes else 0
    marks = config.marks_max + members
    return {
        "kept for retransmission": everybody,
        "held back by a view change": 2 * everybody,  # in FLUSH, and in STABLE
        "waiting for their order": everybody + window,  # at the coordinator; own multicasts in the forward-table
        **({"kept for others": 2 * max(config.gossip_buffer, LATE_BUFFER)} if gossips else {}),
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
    """The objects at which the paths of tables begin."""
    member = session.member
    parts = {type(layer).__name__.lower(): layer for layer in member.stack.layers}
    parts |= {"stack": member.stack, "env": member.stack.env, "session": session, "network": session.network}
    parts |= {"seal": member.stack.codec.seal, "secret": session.options.keys}
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
    begins, found = roots(session), {}
    for path, limit in valued(begins, config, members):
        filled = list(sizes(begins, path))
        if filled:
            found[path] = {"size": max(filled), "limit": limit}
    return found
