"""The values of `channel.stats()`: counters, gauges, tables with their limits, and the bound of the memory."""

from __future__ import annotations

from typing import Any, Final

from pygroups.core.limits import SECOND
from pygroups.core.services import GOSSIP
from pygroups.core.stack import Stack

from . import bounds
from .session import Session

SENT_AGAIN: Final = {
    "runs_sent_again": ("runs sent again", "unicast runs sent again"),
    "bytes_sent_again": ("bytes sent again", "unicast bytes sent again"),
}
"""The counters of the layers that each total adds up."""
STAGES: Final = ("preparing", "committing", "prepared", "committed")  # tables of design note 003, in runs


def statistics(session: Session) -> dict[str, Any]:
    """Plain values that JSON can represent, with sizes in bytes.

    `totals`: the messages of this incarnation so far; their bytes are those of the packed runs.  `gauges`: the number
    of things that each layer holds, all 0 when the group is quiet.  `tables`: each table of this member with `size`,
    the entries or bytes of the fullest one of that name, and `limit`; a limit is None where each entry is a call of the
    program that has not returned.  `memory`: the most bytes that each kind of thing can take in the current view, or
    with the processes that have a connection now.  `memory_bound`: their sum.
    `uniform`: the runs in each stage of uniform delivery, own ones (`preparing`, `committing`) and all (`prepared`,
    `committed`), and the members that it waits for; None in a profile without it.
    """
    options, member, reading = session.options, session.member, session.reading
    env, journal, view = member.stack.env, member.journal, session.view
    members = bounds.crowd(session)
    memory = bounds.memory(options.limits, members, gossips=GOSSIP in env.services)
    if options.rejoin:
        memory["of an excluded incarnation"] = sum(memory.values())
    return {
        "address": str(session.me),
        "group": options.group,
        "profile": options.profile,
        "view": None if view is None else [view.id.number, str(view.id.leader)],
        "members": 0 if view is None else len(view.members),
        "totals": env.totals.plain()
        | {total: sum([env.counters.get(name, 0) for name in names]) for total, names in SENT_AGAIN.items()},
        "counters": dict(env.counters),
        "gauges": member.stack.gauges(),
        "payload_max": options.limits.payload_max,
        "window": {
            "size": options.limits.window,
            "free": session.sending.room(),
            "waits_for": [str(member) for member in session.sending.holders()],
        },
        "uniform": _uniform(member.stack),
        "unread": {"items": len(reading.queue), "bytes": reading.queue_bytes},
        "unsent_bytes": session.network.waiting_bytes(),
        "journal": None if journal is None else {"records": journal.next_index, "lost": journal.lost},
        "loop": {"stalls": session.watchdog.stalls, "longest_stall_s": session.watchdog.longest_stall / SECOND},
        "tables": bounds.tables(session, options.limits, members),
        "memory": memory,
        "memory_bound": sum(memory.values()),
    }


def _uniform(stack: Stack) -> dict[str, Any] | None:
    found = [layer for layer in stack.layers if "UNIFORM" in layer.gives]
    if not found:
        return None
    gauges = found[0].gauges()
    return {name: gauges[name] for name in STAGES} | {"waits_for": [str(one) for one in found[0].waits_for()]}
