"""The questions of discovery over UDP: a question and its answer are one datagram each."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from pygroups.core.errors import PeerError

from ..book import Book
from ..contacts import Contact
from ..handshake import Handshake, Unopened
from ..hello import Answering, DiscoveryQuestion, DiscoveryReply, decoded, packed
from ..sockets import SocketAddress
from .sockets import Datagrams

SEARCH: Final = b"F"  # the first byte of a question
RESULT: Final = b"R"  # and of its answer
OPEN_MAX: Final = 4_096  # questions of this process whose answers may still come

Done = Callable[[DiscoveryReply | None], None]


class QuestionsNetwork(Protocol):
    """The part of the network that the questions use."""

    asked: Callable[[DiscoveryQuestion, Answering], None] | None
    count: Callable[..., None]
    book: Book
    datagrams: Datagrams
    handshake: Handshake

    def unopened(self, body: bytes | memoryview, where: str) -> bytes: ...
    def places_of(self, contact: Contact) -> list[SocketAddress]: ...


class UdpQuestions:
    """The questions of one process, and the answers to the questions of others."""

    def __init__(self, network: QuestionsNetwork) -> None:
        self.network = network
        self.open: dict[bytes, tuple[list[SocketAddress], Done]] = {}  # own questions, by nonce: where no host refused

    # -- own questions

    def ask(self, contact: Contact, question: DiscoveryQuestion, done: Done) -> None:
        """Ask the process at `contact`.  `done` is called with the answer, with None if the host reports that no
        process listens there, or not at all."""
        network = self.network
        places = list(network.places_of(contact))
        if not network.book.insecure and not all(ipaddress.ip_address(host).is_loopback for host, _ in places):
            network.count("contacts beyond this machine")
            return
        if not places:
            return  # the name is being looked up; the question is repeated
        self.open[question.nonce] = (places, done)
        if len(self.open) > OPEN_MAX:
            del self.open[next(iter(self.open))]
        for place in places:
            network.datagrams.give([SEARCH + network.handshake.closed(packed(question), place=place)], place)

    def answered(self, datagram: memoryview, place: SocketAddress) -> None:
        """An answer has arrived."""
        try:
            body = self.network.handshake.answered(datagram[1:], place)
            reply = decoded(body, DiscoveryReply)
        except PeerError as error:
            self.network.count(f"answers dropped: {error.reason}")
            return
        _, done = self.open.pop(reply.nonce, (None, None))
        if done is None:
            self.network.count("answers to no question")
        else:
            done(reply)

    def refused(self, place: SocketAddress) -> None:
        """The host reports that no process listens at `place`."""
        for nonce, (places, done) in [question for question in self.open.items() if place in question[1][0]]:
            places.remove(place)
            if not places:
                del self.open[nonce]
                done(None)

    # -- questions of others

    def asked(self, datagram: memoryview, place: SocketAddress) -> None:
        """A question of the process at `place` has arrived."""
        try:
            question = decoded(self.network.handshake.opened(datagram[1:]), DiscoveryQuestion)
        except Unopened:
            if refusal := self.network.unopened(datagram[1:], place[0]):
                self.network.datagrams.give([RESULT + refusal], place)
            return
        except PeerError as error:
            self.network.count(f"questions dropped: {error.reason}")
            return
        if self.network.asked is None:
            self.network.count("unanswered questions of discovery")
        else:
            self.network.asked(question, partial(self._answer, place, len(datagram)))

    def _answer(self, place: SocketAddress, longest: int, reply: DiscoveryReply) -> None:
        """Send an answer, if it is at most as long as the question."""
        datagram = RESULT + self.network.handshake.closed(packed(reply))
        if len(datagram) <= longest:
            self.network.datagrams.give([datagram], place)
        else:
            self.network.count("answers of discovery that are longer than the question")
