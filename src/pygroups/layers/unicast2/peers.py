"""The parts that both sides of UNICAST2 use: the members of the view, the peers that have ended, the time of the next
check of each peer, and the journal's record of each run that an application sends to a single member.

Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Generic, TypeVar

from pygroups.core.address import Address
from pygroups.core.columns import checksum
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import OfApplication, Run
from pygroups.core.tables import Tables

TO_SELF: Final = 0  # the connection id, in the journal, of messages that a member sends to itself

T = TypeVar("T")


class Memory(Generic[T]):
    """One entry for each of at most `most` peers, kept for `age` microseconds."""

    __slots__ = ("age", "most", "things")

    def __init__(self, age: int, most: int) -> None:
        self.age = age
        self.most = most
        self.things: dict[Address, tuple[int, T]] = {}  # until when; the oldest first

    def put(self, peer: Address, thing: T, now: int) -> bool:
        """Remember `thing` as the entry of `peer`, in place of an earlier entry.  Returns whether the entry of another
        peer was dropped before its time."""
        self.things.pop(peer, None)
        self.things[peer] = (now + self.age, thing)
        if len(self.things) <= self.most:
            return False
        until, _ = self.things.pop(next(iter(self.things)))
        return now < until

    def get(self, peer: Address, now: int) -> T | None:
        """The entry of `peer`, or None if the entry is missing or too old."""
        until, thing = self.things.get(peer, (now, None))
        return thing if now < until else None

    def remove(self, peer: Address) -> None:
        """Remove the entry of `peer`."""
        self.things.pop(peer, None)


class Peers:
    """The peers of one member; `forget` closes both connections with a peer."""

    __slots__ = ("dead", "due", "forget", "gone", "layer", "members", "proven")

    tables: ClassVar[Tables] = {
        "dead.things": "unicast_peers_max",
        "dead.things[]": "fixed",
        "due": "peers_of_both_sides",
        "members": "members",
        "proven": "members",
    }

    def __init__(self, layer: Layer, forget: Callable[[Address], None]) -> None:
        self.layer = layer
        self.forget = forget
        self.members: dict[Address, None] = {}  # of the view: their connections are never given up
        self.proven: dict[Address, None] = {}  # members of the view with a proof of their end, which may be wrong
        config = layer.env.config
        self.dead: Memory[bool] = Memory(config.connection_age, config.unicast_peers_max)  # outsiders that ended
        self.due: dict[Address, int] = {}  # peers with which something is open, and when to look after them
        self.gone = False  # this member has left: the layers above take nothing any more, nothing is acknowledged

    # -- members and ends

    def may_send_to(self, peer: Address) -> bool:
        """Whether a connection to `peer` may be opened."""
        return not self.gone and not self.dead.get(peer, self.layer.env.now)

    def ended(self, peer: Address) -> None:
        """`peer` is proven to have ended.  The proof may be wrong: a member of the view loses its connection only when
        a view is installed without it."""
        if peer in self.members:
            self.proven[peer] = None
        else:
            self.forget(peer)
            self.dead.put(peer, True, self.layer.env.now)

    def lives(self, peer: Address) -> None:
        """`peer` was heard: no proof of its end counts."""
        self.proven.pop(peer, None)
        self.dead.remove(peer)

    def install(self, members: tuple[Address, ...]) -> None:
        """Take the members of a new view."""
        now, proven = self.layer.env.now, self.proven
        self.members, self.proven = dict.fromkeys(members), {m: None for m in members if self.dead.get(m, now)}
        for member in self.proven:
            self.dead.remove(member)
        for peer in proven:
            self.ended(peer)

    def make_room(self, table: Mapping[Address, object]) -> None:
        """One more peer fits into `table` of connections: the oldest peer outside the view is forgotten if need be."""
        if len(table) >= self.layer.env.config.unicast_peers_max:
            for oldest in [peer for peer in table if peer not in self.members][:1]:
                self.forget(oldest)

    # -- when to look after a peer

    def look_after(self, peer: Address, when: int) -> None:
        """A connection with `peer` has open work: look after `peer` at `when` at the latest."""
        if when < self.due.get(peer, NEVER):
            self.due[peer] = when
            self.layer.wake_at(when)

    def leave_alone(self, peer: Address) -> None:
        """No connection with `peer` has open work: the timer does not fire for `peer`."""
        if self.due.pop(peer, NEVER) <= self.layer.wake:
            self.layer.wake = self.next_due()

    def take_due(self) -> list[Address]:
        """The peers to look after now; each is looked after once."""
        due = [peer for peer, when in self.due.items() if when <= self.layer.env.now]
        for peer in due:
            del self.due[peer]
        return due

    def next_due(self) -> int:
        """The time to look after the next peer; NEVER if no peer has open work."""
        return min(self.due.values(), default=NEVER)


def is_own(run: Run) -> bool:
    """Whether an application sent the run: it is journaled, and reported when it is given up."""
    return run.origin is not None and (not run.heads or isinstance(run.head, OfApplication))


def record(env: Env, kind: str, run: Run, receiver: Address, conn: int) -> None:
    """Journal that the run was sent or delivered, if an application sent it.  Both ends write the same columns.

    Of the pieces of a message only the last one is journaled.
    """
    if env.journaling and run.count and is_own(run):
        env.record(kind, **run.columns(), checksum=checksum(run.body), peer=receiver, connection=conn)
