"""Frames over UDP: a datagram to each receiver, or one to a multicast address that all members listen to.

This module repairs no losses: the layers retransmit data that the network or a full buffer drops.  Refusals prove the
end of a process (udp_peer.py).  A datagram is a frame, a part of a frame (datagrams.py), a question or an answer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Incompatible
from pygroups.core.errors import NotSent, PeerError, UsageError
from pygroups.core.limits import SECOND, TEXT_MAX, Config
from pygroups.core.tables import Tables, under
from pygroups.core.turn import Source
from pygroups.drivers.udp.datagrams import PARTS_MAX, UNFINISHED_COST, UNFINISHED_MAX
from pygroups.drivers.udp.sockets import DATAGRAM_READ
from pygroups.wire.frame import VERSION

from ..contacts import Contact, announced, checked_place, parse_contact
from ..handshake import Handshake, Unopened
from ..hello import Answering, DiscoveryQuestion, DiscoveryReply, Hello, Welcome, decoded, packed, welcome
from ..network import Network
from ..rate_limited import RateLimitedLog
from ..sockets import SocketAddress, resolved
from .contact_search import ContactSearch
from .datagrams import SPLIT, Joiner, is_frame, sender_of, split
from .peer import NONCE_BYTES, UdpPeer, parted
from .questions import OPEN_MAX, RESULT, SEARCH, UdpQuestions
from .sockets import Datagrams
from .strangers import Strangers

LOGGER: Final = logging.getLogger("pygroups.drivers.udp")
QUESTION: Final = b"Q"
ANSWER: Final = b"A"
PLACES_MAX: Final = 8  # addresses of one name that are tried
CANNOT_ANSWER: Final = "this member cannot send to the joiner:"  # begins the refusal of a contact
OTHER_VERSION_OF_IP: Final = "peers whose address has another version of IP"


class UdpNetwork(Network):
    """The datagrams of one member.  `receive` is called with each frame, `happened` with Ended, Answered and Dead.

    `to_all`: an IP multicast address and port, or None.  A frame for more than one member goes to this address, once.
    """

    lossless = False  # a lost datagram is not reported
    logger = LOGGER

    tables: ClassVar[Tables] = {
        "book.hearsay": "contacts",
        "book.standing": "contacts",
        "by_incarnation": "contacts",
        "by_incarnation[].answered_from": "fixed",
        "by_incarnation[].nonce": "fixed",
        "by_incarnation[].places": "fixed",
        "datagrams.area": DATAGRAM_READ,
        "datagrams.opened": "fixed",
        "datagrams.opened[]": "fixed",
        "datagrams.waiting": "link_frames",
        "datagrams.waiting[]": "fixed",
        "datagrams.waiting[][]": "frame",
        "discovery.open": OPEN_MAX,
        "discovery.open[]": "fixed",
        "discovery.open[][]": "fixed",
        "discovery.open[][][]": "fixed",
        "joiner.frames": lambda config, _: config.receive_bytes // UNFINISHED_COST,
        "joiner.frames[].parts": PARTS_MAX,
        "joiner.frames[].parts[]": DATAGRAM_READ,
        "joiner.senders": lambda config, _: config.receive_bytes // UNFINISHED_COST,
        "joiner.senders[]": UNFINISHED_MAX + 1,
        "lookups": "contacts",
        "members": "members",
        "own_incarnation": "fixed",
        "peers": "contacts",
        "peers[].answered_from": "fixed",
        "peers[].nonce": "fixed",
        "peers[].places": "fixed",
        "places": "contacts",
        "places[]": "fixed",
        "places[][]": "fixed",
        "searches": "contacts",
        "strangers.known": "contacts",
        "strangers.known[]": "fixed",
        **under("warn", RateLimitedLog.tables),
        **under("handshake", Handshake.tables),
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
        to_all: Contact | None = None,
        handshake: Handshake | None = None,
    ) -> None:
        super().__init__(me, group, config, bind=bind, advertise=advertise, insecure=insecure, handshake=handshake)
        self.to_all = to_all
        self.joiner = Joiner(config.receive_bytes, lambda what: self.count(what))
        self.datagrams = Datagrams(self)
        self.asked: Callable[[DiscoveryQuestion, Answering], None] | None = None  # the questions of discovery
        self.discovery = UdpQuestions(self)
        self.peers: dict[Address, UdpPeer] = {}
        self.by_incarnation: dict[bytes, UdpPeer] = {}  # by incarnation, as frames name it
        self.members: dict[Address, None] = {}  # of the view
        self.places: dict[Contact, list[SocketAddress]] = {}  # of hosts that are names; empty while one is looked up
        self.searches: dict[bytes, ContactSearch] = {}  # by the number of the question
        self.lookups: dict[Contact, asyncio.Task[None]] = {}
        self.strangers = Strangers(config.contacts_max, lambda what, by: self.count(what, by))
        self.own_incarnation = bytes.fromhex(me.incarnation)

    # -- beginning and end

    async def open(self) -> None:
        """Bind the sockets.  Raises UsageError if that fails."""
        self.loop = asyncio.get_running_loop()
        try:
            family, place = (await resolved(self.bind, self.loop))[0]
            bound = self.datagrams.open(family, place)
            if self.to_all is not None:
                self.datagrams.listen_to_all(self.to_all, place[0])
        except (OSError, UnicodeError) as error:  # UnicodeError: the name of the host is invalid
            self.datagrams.close()
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot listen on {self.bind} (UDP): {why}; choose another address for bind, or any free "
                "port with port 0"
            ) from error
        try:
            self.contact = await announced(self.me, self.bind, Contact(*bound), self.advertise, self.loop)
        except BaseException:  # a cancelled open too
            self.datagrams.close()
            raise

    def close(self) -> None:
        """Close the sockets.  Peers see the same as at the end of the process."""
        for state in self.peers.values():
            state.stop()
        for lookup in self.lookups.values():
            lookup.cancel()
        self.datagrams.close()
        self.peers, self.by_incarnation = {}, {}

    def waiting_bytes(self) -> int:
        """The bytes that the kernel has not accepted yet, for all peers."""
        return self.datagrams.waiting_bytes

    # -- sending

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Send each frame to each of its receivers."""
        for dests, bodies in frames:
            datagrams = [datagram for body in bodies for datagram in self._split(body)]
            if len(dests) > 1 and self.to_all is not None:
                self.datagrams.give(datagrams, (self.to_all.host, self.to_all.port))
                continue
            for dest in dests:
                place = self._peer(dest).place()
                if place is not None:
                    self.datagrams.give(datagrams, place)
                else:
                    self.count("frames dropped: the receiver's place is not known")

    def _split(self, frame: bytes) -> list[bytes]:
        datagrams = split(frame, self.config.datagram)
        if not datagrams:
            self.count("frames dropped: too large for datagrams")
        return datagrams

    # -- peers

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """Store contacts from `source`.  The contacts of the view name its members."""
        self.book.learn(contacts, source, self.peers)
        for peer in contacts:
            if peer in self.peers:
                self.peers[peer].moved()
        if source is Source.VIEW:
            self.members = dict.fromkeys(contacts)

    def probe(self, peer: Address) -> None:
        """Ask `peer` for a sign of life.  Answered, Dead or nothing follows."""
        if peer == self.me:
            self.happened(Answered(peer))  # a newcomer wants this member's own name
        else:
            self._peer(peer).probe()

    def disconnect(self, peer: Address) -> None:
        """Forget `peer`, which is not needed any more."""
        state = self.peers.pop(peer, None)
        if state is not None:
            state.stop()
            self.by_incarnation.pop(bytes.fromhex(peer.incarnation), None)

    async def meet(self, place: str) -> Address:
        """The process without a group that listens at `place`, "host:port".  Raises NotSent if none answers."""
        if place == self.contact:
            return self.me
        contact = checked_place(place, insecure=self.book.insecure)
        if reason := self.unreachable(contact):
            raise NotSent(f"the message was not sent: {reason}")
        nonce = secrets.token_bytes(NONCE_BYTES)
        search = self.searches[nonce] = ContactSearch(self, contact)
        try:
            peer = await search.peer(lambda where: self.send_hello(None, where, nonce))
        finally:
            del self.searches[nonce]
        self.learn({peer: str(contact)}, Source.DIRECTORY)
        self.happened(Answered(peer))
        return peer

    def _peer(self, peer: Address) -> UdpPeer:
        state = self.peers.get(peer)
        if state is None:
            if len(self.peers) >= len(self.members) + self.config.guests:
                self._forget_a_guest()
            state = self.peers[peer] = UdpPeer(self, peer)
            self.by_incarnation[bytes.fromhex(peer.incarnation)] = state
        return state

    def _forget_a_guest(self) -> None:
        """Forget a peer outside the view.  No event says when a refused or ended joiner is not needed."""
        guest = next(
            (peer for peer, state in self.peers.items() if peer not in self.members and not state.asking), None
        )
        if guest is not None:
            self.disconnect(guest)

    # -- for the states of the peers

    def places_of(self, contact: Contact) -> list[SocketAddress]:
        """The numeric addresses of a contact that the socket can send to.  A name is looked up in a task, and has no
        address until the lookup is done."""
        if not contact.is_number:
            if contact not in self.places and len(self.places) < self.config.contacts_max:
                self.places[contact] = []
                self.lookups[contact] = self.loop.create_task(self._look_up(contact))
            return self.places.get(contact, [])
        if reason := self.unreachable(contact):
            self.count(OTHER_VERSION_OF_IP)
            self.warn.warning("version", "no datagram can go to a peer: %s", reason)
            return []
        return [(contact.host, contact.port)]

    async def _look_up(self, contact: Contact) -> None:
        """Find the addresses of the host that the socket can send to."""
        try:
            found = [place for _, place in await resolved(contact, self.loop)]
            self.places[contact] = [place for place in found if self.datagrams.reaches(place[0])][:PLACES_MAX]
            if not self.places[contact]:
                self.count(OTHER_VERSION_OF_IP)
        except (OSError, UnicodeError):
            self.count("peers whose host is not known")
            self.places[contact] = []
        finally:
            del self.lookups[contact]
            if not self.places[contact]:
                del self.places[contact]  # the name is looked up again
        for state in self.peers.values():
            state.moved()

    def unreachable(self, contact: Contact) -> str:
        """The reason why no datagram of this member can arrive at `contact`; "" if the version of IP is no obstacle."""
        if not contact.is_number or self.datagrams.reaches(contact.host):
            return ""
        reached = "IPv4" if self.datagrams.sends_four else "IPv6"
        return (
            f"{contact} is not an {reached} address, and a UDP socket that is bound to {self.bind} sends only to "
            f"{reached} addresses: give bind='[::]:0', which reaches both"
        )

    def send_hello(self, peer: Address | None, place: SocketAddress, nonce: bytes) -> None:
        """Ask `peer` for an answer, and send it the contact of this member."""
        self.datagrams.give([QUESTION + nonce + self.hello(peer, nonce, place)], place)

    def refused(self, peer: Address, answer: Welcome) -> None:
        """`peer` refuses the messages of this member."""
        self.count("connections refused by the peer")
        self.warn.warning("by peer", "%s refuses the messages of this member: %r", peer, answer.refusal)
        if answer.version != VERSION or answer.refusal.startswith(CANNOT_ANSWER):
            self.happened(Incompatible(peer, answer.refusal))

    # -- questions of discovery

    def ask(self, contact: Contact, question: DiscoveryQuestion, done: Callable[[DiscoveryReply | None], None]) -> None:
        """Ask the process at `contact`.  `done` is called with the answer, with None if the host reports that no
        process listens there, or not at all."""
        self.discovery.ask(contact, question, done)

    # -- received datagrams

    def admits(self, place: SocketAddress, count: int) -> bool:
        """Whether to read `count` datagrams from `place`; False for most of a flood.  Without a secret all are read."""
        return self.handshake.seal is None or self.strangers.admit(place, self.loop.time(), count)

    def arrived(self, datagram: memoryview, place: SocketAddress) -> None:
        """A datagram came from `place`."""
        kind = datagram[0] if datagram else 0
        if kind == SPLIT:
            frame = self.joiner.add(datagram, int(self.loop.time() * SECOND))
            if frame is not None:
                self._frame(memoryview(frame), place)
        elif kind == QUESTION[0]:
            self._asked(datagram, place)
        elif kind == ANSWER[0]:
            self._answered(datagram, place)
        elif kind == SEARCH[0]:
            self.discovery.asked(datagram, place)
        elif kind == RESULT[0]:
            self.discovery.answered(datagram, place)
        elif is_frame(datagram):
            self._frame(datagram, place)
        else:
            self.count("datagrams without a frame")

    def _frame(self, frame: memoryview, place: SocketAddress) -> None:
        sender = sender_of(frame)
        if sender == self.own_incarnation:
            return  # an own multicast came back
        if not self.receive(frame):
            self.warn.warning(f"frame {place[0]}", "a datagram from %s is dropped: no frame of this group", place[0])
            return
        self.strangers.heard(place)
        state = self.by_incarnation.get(sender)
        if state is not None:
            state.heard()

    def _asked(self, datagram: memoryview, place: SocketAddress) -> None:
        try:
            nonce, body = parted(datagram)
            hello = decoded(self.handshake.opened(body, nonce), Hello)
        except Unopened:
            if refusal := self.unopened(body, place[0]):
                self.datagrams.give([ANSWER + nonce + refusal], place)
            return
        except PeerError as error:
            self.count(f"questions dropped: {error.reason}")
            return
        answer = welcome(hello, self.me, self.group)
        if not answer.refusal and (reason := self._unanswerable(hello)):
            answer = Welcome(VERSION, None, reason)
        if answer.refusal:
            self.count("questions refused")
        else:
            self.learn({hello.sender: hello.contact}, Source.PEER)
        reply = ANSWER + nonce + self.handshake.closed(packed(answer), nonce)
        if len(reply) <= len(datagram):  # so no sender can use this member to send more bytes to a third host
            self.datagrams.give([reply], place)
        else:
            self.count("answers that are longer than the question")

    def _unanswerable(self, hello: Hello) -> str:
        """The refusal of a sender whose contact this member cannot send to; "" if this member can send to the
        contact."""
        try:
            reason = self.unreachable(parse_contact(hello.contact))
        except UsageError:
            return ""
        return f"{CANNOT_ANSWER} {reason}"[:TEXT_MAX] if reason else ""

    def _answered(self, datagram: memoryview, place: SocketAddress) -> None:
        try:
            nonce, body = parted(datagram)
            state = next((state for state in self.peers.values() if state.nonce == nonce), None)
            if state is None and nonce not in self.searches:
                self.count("answers without a question")
                return
            answer = decoded(self.handshake.answered(body, place, nonce), Welcome)
        except PeerError as error:
            self.count(f"answers dropped: {error.reason}")
            return
        if nonce in self.searches:
            self.searches[nonce].answered(answer)
        elif state is not None:
            state.answered(answer, place)

    def refused_at(self, place: SocketAddress) -> None:
        """The host says that no process listens at `place`."""
        self.discovery.refused(place)
        for state in [state for state in self.peers.values() if place in state.places]:
            state.refused(place)
        for search in self.searches.values():
            search.refused(place)
