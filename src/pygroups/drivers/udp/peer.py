"""The state that one member keeps of a peer over UDP: the peer's place, its signs of life, and the questions to it.

Datagrams have no connection that could end.  The end of a process is proven by three refusals in a row, without a frame
of the peer in between, from the place that the view or the directory names.  The answer of another process at that
place proves the end too.  An answer of the peer withdraws the proof.  A frame does not, because the peer may have sent
it before its end.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.errors import PeerError
from pygroups.core.events import Event
from pygroups.core.limits import HELLO_MAX, MILLISECOND, SECOND, Config

from ..book import Reach
from ..contacts import Contact
from ..hello import NOT_WANTED, Welcome
from ..sockets import SocketAddress

REFUSALS: Final = 3  # in a row
ASK_PAUSE_MIN: Final = MILLISECOND  # between two questions; doubles
ASK_PAUSE_MAX: Final = 50 * MILLISECOND
NONCE_BYTES: Final = 8


class UdpPeerNetwork(Protocol):
    """The part of the network that the state of a peer uses."""

    config: Config
    loop: asyncio.AbstractEventLoop
    happened: Callable[[Event], None]
    count: Callable[..., None]

    def reaches(self, peer: Address) -> list[Reach]: ...
    def places_of(self, contact: Contact) -> list[SocketAddress]:
        """The numeric addresses to send to; no address while a name is looked up, or if the lookup failed."""

    def send_hello(self, peer: Address, place: SocketAddress, nonce: bytes) -> None: ...
    def answered_at(self, peer: Address, contact: Contact) -> None: ...
    def refused(self, peer: Address, answer: Welcome) -> None: ...


class UdpPeer:
    """The state of one peer."""

    def __init__(self, network: UdpPeerNetwork, peer: Address) -> None:
        self.network = network
        self.peer = peer
        self.places: dict[
            SocketAddress, bool
        ] = {}  # where the peer may listen, and whether a refusal there is a sign of its end
        self.answered_from: SocketAddress | None = None  # where the peer answered last
        self.current = False  # `places` agrees with the book
        self.known = False  # the peer has answered: it knows where this member listens
        self.introduced_at = -1.0  # the loop's time of this member's last hello
        self.ended = False  # a refusal was reported, and no frame came since
        self.dead = False  # the end was proven, and no answer came since
        self.nonce = secrets.token_bytes(NONCE_BYTES)  # of the questions: an answer to an older one proves nothing
        self.ask_until = 0.0  # the loop's time; 0 while this member asks no question
        self.pause = ASK_PAUSE_MIN
        self.refusals = 0
        self.timer: asyncio.TimerHandle | None = None

    # -- the place of the peer

    def moved(self) -> None:
        """Note that the book, or the address of a host's name, may have changed."""
        self.current = False

    def _look_up(self) -> None:
        self.current = True
        found: dict[SocketAddress, bool] = {}
        for contact, stands in self.network.reaches(self.peer):
            places = self.network.places_of(contact)
            if not places:
                self.current = False
            for place in places:
                sure = len(places) == 1 or place == self.answered_from  # the peer may listen at one address of its name
                found.setdefault(place, stands and sure)
        self.places = found

    def place(self) -> SocketAddress | None:
        """The address for frames to the peer."""
        if not self.current:
            self._look_up()
        if not self.known:
            self._introduce()
        return self.answered_from if self.answered_from in self.places else next(iter(self.places), None)

    def _introduce(self) -> None:
        """Send a hello now and then, until the peer has answered, so that the peer knows this member's contact."""
        now = self.network.loop.time()
        if now - self.introduced_at >= ASK_PAUSE_MAX / SECOND:
            self.introduced_at = now
            self._send_hello()

    def _send_hello(self) -> None:
        for place in self.places:
            self.network.send_hello(self.peer, place, self.nonce)

    # -- questions to the peer

    @property
    def asking(self) -> bool:
        return self.ask_until > 0

    def probe(self) -> None:
        """Ask the peer for a sign of life, for `verify_timeout`, until an answer or three refusals arrive."""
        self.ask_until = self.network.loop.time() + self.network.config.verify_timeout / SECOND
        if self.timer is None:
            self.nonce = secrets.token_bytes(NONCE_BYTES)
            self.refusals, self.pause = 0, ASK_PAUSE_MIN
            self._ask()

    def _ask(self) -> None:
        self.timer = None
        if self.network.loop.time() >= self.ask_until:
            self.ask_until = 0.0
            self.network.count("unanswered questions")
            return
        if not self.current:
            self._look_up()
        self._send_hello()
        self.timer = self.network.loop.call_later(self.pause / SECOND, self._ask)
        self.pause = min(2 * self.pause, ASK_PAUSE_MAX)

    def stop(self) -> None:
        """End the questions."""
        self.ask_until = 0.0
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    # -- signs of life, and refusals

    def heard(self) -> None:
        """A frame of the peer has arrived."""
        self.ended = False
        self.refusals = 0
        if self.dead and not self.asking:
            self.probe()

    def answered(self, welcome: Welcome, place: SocketAddress) -> None:
        """The process that listens at `place` has answered a question to this peer."""
        if welcome.listener == self.peer and not welcome.refusal:
            report = self.asking or self.dead
            if self.places.get(place) is False:
                self.network.answered_at(self.peer, Contact(*place))
            self.known, self.ended, self.dead = True, False, False
            if place != self.answered_from:
                self.answered_from, self.current = place, False
            self.stop()
            if report:
                self.network.happened(Answered(self.peer))
        elif welcome.refusal in NOT_WANTED or not welcome.refusal:
            if self.places.get(place):
                self._declare_dead(certain=all(reach.contact.is_number for reach in self.network.reaches(self.peer)))
        else:
            self.network.refused(self.peer, welcome)

    def refused(self, place: SocketAddress) -> None:
        """The host of the peer reports that no process listens at `place`."""
        if not self.places[place]:
            self.network.count("refusals at a place that only a hello named")
        elif self.asking:
            self.refusals += 1
            if self.refusals >= REFUSALS:
                self._declare_dead()
        elif not self.ended and not self.dead:
            self.ended = True
            self.network.happened(Ended(self.peer))

    def _declare_dead(self, *, certain: bool = False) -> None:
        report = self.asking or not self.dead
        self.dead, self.known = True, False
        self.stop()
        if report:
            self.network.happened(Dead(self.peer, certain))


def parted(datagram: memoryview) -> tuple[bytes, memoryview]:
    """The number of a question or an answer, and the message in `datagram`.  Raises PeerError for a wrong length."""
    if not 1 + NONCE_BYTES < len(datagram) <= 1 + NONCE_BYTES + HELLO_MAX:
        raise PeerError("malformed hello")
    return bytes(datagram[1 : 1 + NONCE_BYTES]), datagram[1 + NONCE_BYTES :]
