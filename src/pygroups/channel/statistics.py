"""The values of `channel.stats()`: counters, gauges, and the bound of the memory."""

from __future__ import annotations

from typing import Any

from pygroups.core.limits import SECOND

from .session import Session


def statistics(session: Session) -> dict[str, Any]:
    """Plain values that JSON can represent, with sizes in bytes.

    `gauges`: the number of things that each layer holds, all 0 when the group is quiet.  `memory_bound`: the computed
    limit of this member's queues in the current view; see memory_bound().
    """
    options, member, reading = session.options, session.member, session.reading
    env, journal, view = member.stack.env, member.journal, session.view
    return {
        "address": str(session.me),
        "group": options.group,
        "profile": options.profile,
        "view": None if view is None else [view.id.number, str(view.id.leader)],
        "members": 0 if view is None else len(view.members),
        "counters": dict(env.counters),
        "gauges": member.stack.gauges(),
        "payload_max": options.limits.payload_max,
        "window": {
            "size": options.limits.window,
            "free": session.sending.room(),
            "waits_for": [str(member) for member in session.sending.holders()],
        },
        "unread": {"items": len(reading.queue), "bytes": reading.queue_bytes},
        "unsent_bytes": session.network.waiting_bytes(),
        "journal": None if journal is None else {"records": journal.next_index, "lost": journal.lost},
        "loop": {"stalls": session.watchdog.stalls, "longest_stall_s": session.watchdog.longest_stall / SECOND},
        "memory_bound": memory_bound(session),
    }


def memory_bound(session: Session) -> int:
    """The most bytes that messages can occupy in this process.

    Each member has at most one window of unread multicasts.  This process can hold each of them once in the store for
    retransmissions, once unread, once in the queue for ordering (at the coordinator), once in the forward-table (own
    multicasts), and once in the queue of each peer's connection.  Each member also has at most one window of unread
    messages to this member alone, and this member has one such window to each of them.  Unread events can grow to
    `queue_max` while the reading task sends or a state is loaded.  Incomplete frames take at most `receive_bytes`.
    A payload that is larger than a run is bounded by `payload_max` and not by a window.  Of each member one such
    multicast and one such message to this member alone can be here, in three copies: in pieces, joined, and as the
    payload that is read.  One own payload to everyone and one to each other member can be here in two copies.
    """
    config = session.options.limits
    members = 1 if session.view is None else len(session.view.members)
    everybody = members * config.window
    links = (members - 1) * min(everybody, config.link_bytes)
    large = (6 + 2) * members * config.payload_max if config.payload_max > config.run_bytes else 0
    return 5 * everybody + config.window + links + config.queue_max + config.receive_bytes + large
