"""The tables of a member: every container that can grow, named with its limit beside the state that it is.

A class says in `tables` which containers its objects hold: by path, where `[]` stands for each element, the limit.  A
part of a layer says so itself, and the layer puts the part's rows under the path of the part.  A limit is a number, the
name of one of `limits`, or a function of the configuration and of the number of members.  A test walks over all
containers that it can reach, and fails for one that has no row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .limits import (
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

Limit = str | int | Callable[[Config, int], int]
Tables = Mapping[str, Limit]

FIXED: Final = 256  # the most entries of a table that the program's structure fills: layers, types of heads
LENGTH_BYTES: Final = 4  # before each frame in a stream of bytes
BETWEEN_LAYERS: Final[Tables] = {"above": "turn", "below": "turn"}
"""The rows of each layer: events and runs for its neighbors leave in the same turn."""


def under(path: str, tables: Tables) -> dict[str, Limit]:
    """The rows of a part, under its path; those that begin with `[]` follow it without a dot."""
    return {f"{path}{name}" if name[:1] in ("", "[") else f"{path}.{name}": limit for name, limit in tables.items()}


def rows(begins: Mapping[str, object]) -> Iterator[tuple[str, Limit]]:
    """The paths of the tables of these parts, with their limits."""
    for name, part in begins.items():
        between = BETWEEN_LAYERS if hasattr(part, "above") else {}
        tables: Tables = getattr(part, "tables", {})
        yield from under(name, {**between, **tables}).items()


def valued(begins: Mapping[str, object], config: Config, members: int) -> Iterator[tuple[str, int | None]]:
    """The same with the value of each limit in a view of `members`.  None: the program decides, because each entry is
    one of its own calls that has not returned."""
    shared = limits(config, members)
    for path, limit in rows(begins):
        if isinstance(limit, str):
            yield path, shared[limit]
        else:
            yield path, limit if isinstance(limit, int) else limit(config, members)


def limits(config: Config, members: int) -> dict[str, int | None]:
    """The value of each limit that several tables share, in a view of `members`."""
    return {"calls": None} | _of_members(config, members) | _of_runs(config, members) | _of_bytes(config) | CONSTANTS


CONSTANTS: Final[dict[str, int | None]] = {
    "nothing": 0,
    "turn": 0,  # emptied before the turn ends
    "fixed": FIXED,
    "members_max": MEMBERS_MAX,
    "known": 2 * MEMBERS_MAX,  # members of the view, and processes outside
    "gaps": GAPS_MAX,
    "views": MEMBERS_MAX,
    "found": 2 * MEMBERS_MAX,
    "slowest": SLOWEST_MAX,
    "read_requests": READ_REQUESTS_MAX,
    "counters": COUNTERS_MAX,
    "run_messages": RUN_MESSAGES_MAX,
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
    }


def sizes(begins: Mapping[str, object], path: str) -> Iterator[int]:
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
