"""What `channel.stats()` says: counters, what is held now, and what it may come to."""

from __future__ import annotations

from typing import Any

from pygroups.core.limits import SECOND

from .session import Session


def statistics(session: Session) -> dict[str, Any]:
    """Plain values that JSON can hold; sizes in bytes.

    `gauges` is what the layers hold, all 0 when everything is quiet.  `memory_bound` is what the queues of this member
    may come to in this view, by arithmetic: see memory_bound.
    """
    options, member, reading = session.options, session.member, session.reading
    env, journal, view = member.stack.env, member.journal, session.view
    return {
        "address": str(session.me),
        "group": options.group,
        "profile": options.profile.name,
        "view": None if view is None else [view.id.number, str(view.id.leader)],
        "members": 0 if view is None else len(view.members),
        "counters": dict(env.counters),
        "gauges": member.stack.gauges(),
        "payload_max": options.config.run_bytes,
        "window": {
            "size": options.config.window,
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
    """What messages may occupy here at most, in bytes.

    No member has more than a window of multicasts that not all have read.  Each may lie here once in the store for
    resending, once unread, once at the coordinator in the queue to be ordered, once in the forward-table if it is our
    own, and once in what waits for each peer's connection.  Beside, each member has a window of messages to this one
    alone that are unread, and this one as much to each of them.  Unread events may grow to `queue_max` while the
    reading task sends or a state is loaded, and frames that have not come whole take `receive_bytes` at most.
    """
    config = session.options.config
    members = 1 if session.view is None else len(session.view.members)
    everybody = members * config.window
    links = (members - 1) * min(everybody, config.link_bytes)
    return 5 * everybody + config.window + links + config.queue_max + config.receive_bytes
