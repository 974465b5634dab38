"""How long a member can be silent in a view until another member suspects it."""

from __future__ import annotations

from .limits import Config


def far_beats(config: Config, members: int) -> int:
    """The number of heartbeats, in a view of so many members, until a member has sent one to every member that is no
    neighbor.  The number is 0 if each heartbeat goes to all members."""
    others = members - 1 - 2 * config.heartbeat_neighbors
    return 0 if members <= config.heartbeat_all or others <= 0 else -(-others // (2 * config.heartbeat_neighbors))


def detection(config: Config, members: int) -> int:
    """The longest time in a view of so many members until a member suspects a silent member, in microseconds."""
    return config.heartbeat_timeout + far_beats(config, members) * config.heartbeat + config.verify_timeout
