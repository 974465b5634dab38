"""Frames over TCP.

A member dials a connection to each peer for the frames that it sends (peer_connection.py), and accepts a connection
from each peer for the frames that it receives (door.py).  A handshake comes before the first frame (hello.py).  A zero
in place of a frame's length is a closing message.  Note: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Incompatible, Lost
from pygroups.core.errors import UsageError
from pygroups.core.limits import Config
from pygroups.core.tables import Tables, under
from pygroups.core.turn import Source
from pygroups.wire.frame import VERSION

from ..book import Reach
from ..contacts import Contact, announced, checked_place
from ..forks import closed_in_children
from ..handshake import Handshake
from ..hello import LENGTH, Answering, DiscoveryQuestion, DiscoveryReply, Hello, Welcome
from ..network import Network
from ..no_process import no_process_at
from ..rate_limited import RateLimitedLog
from ..sockets import accept_both_versions, patience_ms, resolved
from .dialer import PROOFS, Dialer
from .door import LOGGER, Door
from .peer_connection import PeerConnection
from .questions import Silence, asked_over_tcp

QUESTIONS_MAX: Final = 256  # of discovery, at once


class TcpNetwork(Network):
    """One member's connections.  `receive` is called with each frame, `happened` with Lost, Ended, Answered and
    Dead."""

    lossless = True
    logger = LOGGER

    tables: ClassVar[Tables] = {
        "book.hearsay": "contacts",
        "book.standing": "contacts",
        "outgoing": "connections",
        "outgoing[].dialer.reaches": "fixed",
        "outgoing[].waiting": "link_frames",
        "outgoing[].waiting[]": "frame",
        "questions": QUESTIONS_MAX,
        **under("warn", RateLimitedLog.tables),
        **under("handshake", Handshake.tables),
        **under("door", Door.tables),
    }

    def __init__(
        self,
        me: Address,
        group: str,
        config: Config,
        *,
        bind: str = "127.0.0.1:0",
        advertise: str | None = None,
        insecure: bool = False,
        handshake: Handshake | None = None,
    ) -> None:
        super().__init__(me, group, config, bind=bind, advertise=advertise, insecure=insecure, handshake=handshake)
        self.outgoing: dict[Address, PeerConnection] = {}
        self.questions: set[asyncio.Task[None]] = set()
        self.door = Door(me, group, config, self.warn)
        self.door.handshake, self.door.unopened = self.handshake, self.unopened
        self.guests_bytes = 0  # queued for all peers outside the view

    async def open(self) -> None:
        """Listen on the address of `bind`.  Raises UsageError if that fails."""
        self.loop = asyncio.get_running_loop()
        sock = await self._listening()
        try:
            bound = Contact(*sock.getsockname()[:2])
            self.contact = await announced(self.me, self.bind, bound, self.advertise, self.loop)
        except BaseException:  # a cancelled open too
            sock.close()
            raise
        door = self.door
        door.receive, door.happened, door.greeted = self.receive, self.happened, self._greeted
        door.count, door.crashed = self.count, self.crashed
        door.open(sock)

    async def _listening(self) -> socket.socket:
        try:
            family, place = (await resolved(self.bind, self.loop))[0]
            sock = closed_in_children(socket.socket(family, socket.SOCK_STREAM))
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                accept_both_versions(sock)
                sock.bind(place)
            except OSError:
                sock.close()
                raise
        except (OSError, UnicodeError) as error:  # UnicodeError: the name of the host is invalid
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot listen on {self.bind}: {why}; choose another address for bind, or port 0 for any free port"
            ) from error
        return sock

    def close(self) -> None:
        """End all connections, and stop listening.  Peers see the same as at the end of the process."""
        for task in list(self.questions):
            task.cancel()
        for connection in self.outgoing.values():
            connection.close()
        self.outgoing = {}
        self.door.close()

    def waiting_bytes(self) -> int:
        """The bytes that the kernel has not accepted yet, for all peers."""
        return sum([connection.waiting_bytes for connection in self.outgoing.values()])

    # -- for the stack

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Write each frame to each of its receivers.  All frames of a turn for one receiver go together."""
        batches: dict[Address, tuple[list[bytes], int]] = {}
        for dests, bodies in frames:
            pieces: list[bytes] = []
            size = 0
            for body in bodies:
                pieces += (LENGTH.pack(len(body)), body)
                size += LENGTH.size + len(body)
            for dest in dests:
                batch, so_far = batches.get(dest, ([], 0))
                batches[dest] = (batch + pieces if batch else pieces, so_far + size)
        for dest, (batch, size) in batches.items():
            self._connection(dest).write(batch, size)

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """Store contacts from `source`.  The contacts of the view name its members."""
        self.book.learn(contacts, source, self.outgoing)
        if source is Source.VIEW:
            self.door.members = dict.fromkeys(contacts)
            self._drop_from_guests()
            for connection in [self.outgoing[peer] for peer in contacts if peer in self.outgoing]:
                connection.try_early()  # the members of a new view have just been heard, by one of them at least

    def _drop_from_guests(self) -> None:
        """A view makes peers guests, which share one limit: drop the longest queues, which are lost."""
        guests = [connection for peer, connection in self.outgoing.items() if peer not in self.door.members]
        self.guests_bytes = sum([connection.waiting_bytes for connection in guests])
        for connection in sorted(guests, key=lambda connection: connection.waiting_bytes, reverse=True):
            if self.guests_bytes <= self.config.link_bytes:
                return
            connection.drop()
            self.count("queues dropped of peers outside the view")
            self.happened(Lost(connection.peer))

    def probe(self, peer: Address) -> None:
        """Make a new connection to `peer`.  Answered, Dead or nothing follows."""
        if peer == self.me:
            self.happened(Answered(peer))  # a joiner with this member's name made GMS ask
        else:
            self._connection(peer).probe()

    def disconnect(self, peer: Address) -> None:
        """Close the connection to `peer`, which is not needed any more."""
        connection = self.outgoing.pop(peer, None)
        if connection is not None:
            loses = connection.waiting_bytes > 0
            connection.drop(on_purpose=True)
            connection.close()
            if loses:
                self.happened(Lost(peer))

    def _connection(self, peer: Address) -> PeerConnection:
        connection = self.outgoing.get(peer)
        if connection is None:
            if len(self.outgoing) >= len(self.door.members) + self.config.guests:
                self._forget_idle()
            connection = self.outgoing[peer] = PeerConnection(self, peer)
        return connection

    def _forget_idle(self) -> None:
        """Forget idle connections to peers outside the view.  No event says that a refused or ended joiner is no longer
        needed."""
        idle = [
            peer for peer, connection in self.outgoing.items() if connection.is_idle and peer not in self.door.members
        ]
        for peer in idle:
            del self.outgoing[peer]

    # -- questions of discovery

    @property
    def asked(self) -> Callable[[DiscoveryQuestion, Answering], None] | None:
        """The function that answers the questions of other processes; None: this process does not answer."""
        return self.door.asked

    @asked.setter
    def asked(self, asked: Callable[[DiscoveryQuestion, Answering], None] | None) -> None:
        self.door.asked = asked

    def ask(self, contact: Contact, question: DiscoveryQuestion, done: Callable[[DiscoveryReply | None], None]) -> None:
        """Ask the process at `contact`, over a connection of its own.  `done` is called with the answer, with None if
        no process listens there, or not at all."""
        if len(self.questions) >= QUESTIONS_MAX:
            self.count("questions of discovery that had to wait")  # they are asked again
            return
        task = self.loop.create_task(self._ask(contact, question, done), name=f"pygroups asks {contact}")
        self.questions.add(task)
        task.add_done_callback(self._asked_all)

    async def _ask(
        self, contact: Contact, question: DiscoveryQuestion, done: Callable[[DiscoveryReply | None], None]
    ) -> None:
        try:
            reply = await asked_over_tcp(
                contact, question, self.config, self.loop, self.handshake, insecure=self.book.insecure
            )
        except Silence:
            self.count("unanswered questions of discovery")
        else:
            done(reply)

    def _asked_all(self, task: asyncio.Task[None]) -> None:
        self.questions.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.crashed(error)

    # -- for connections

    async def meet(self, place: str) -> Address:
        """The process without a group that listens at `place`, "host:port".  Raises NotSent if none answers."""
        if place == self.contact:
            return self.me
        contact = checked_place(place, insecure=self.book.insecure)
        dialer = Dialer([Reach(contact, stands=True)], None, self)
        outcome, sock = await dialer.dial()
        if sock is None or dialer.found is None:
            raise no_process_at(contact, refused=outcome in PROOFS, sealed=self.handshake.refusals.objects)
        self.learn({dialer.found: str(contact)}, Source.DIRECTORY)
        self._connection(dialer.found).use(sock)
        self.happened(Answered(dialer.found))
        return dialer.found

    def has_room(self, connection: PeerConnection, size: int) -> bool:
        """Whether `size` more bytes may wait for a peer.  The peers outside the view share the limit of one."""
        is_guest = connection.peer not in self.door.members
        return max(connection.waiting_bytes, self.guests_bytes if is_guest else 0) + size <= self.config.link_bytes

    def queued(self, peer: Address, more: int) -> None:
        """The connection to `peer` has so many more bytes in its queue."""
        if peer not in self.door.members:
            self.guests_bytes += more

    def unacknowledged(self, peer: Address) -> None:
        """Log a peer that is heard, and whose machine has acknowledged no data for so long that the kernel has ended
        the connection: no suspicion follows, because its heartbeats arrive."""
        self.count("connections closed: the peer's machine acknowledged no data")
        if self.hears(peer):
            text = (
                "the machine of %s acknowledged no data of this member for %d s, although the member is heard: "
                "the path may drop large packets (a VPN, a firewall that drops ICMP)"
            )
            self.warn.warning("unacknowledged", text, peer, patience_ms(self.config) // 1000)

    def unreachable(self, contact: Contact) -> str:
        """The reason why no frame of this member can arrive at `contact`: none, because a connection can begin at any
        address of this machine."""
        return ""

    def hears(self, peer: Address) -> bool:
        """Whether `peer` has a connection to this member."""
        return self.door.hears(peer)

    def refused(self, peer: Address | None, answer: Welcome) -> None:
        """`peer` refuses the connection of this member."""
        self.count("connections refused by the peer")
        who = "the process at the named place" if peer is None else peer
        self.warn.warning("by peer", "%s refuses the connection of this member: %r", who, answer.refusal)
        if answer.version != VERSION and peer is not None:
            self.happened(Incompatible(peer, answer.refusal))

    # -- from the door

    def _greeted(self, hello: Hello) -> None:
        """Store the contact of an accepted hello."""
        self.learn({hello.sender: hello.contact}, Source.PEER)
        connection = self.outgoing.get(hello.sender)
        if connection is not None:
            connection.greeted()
