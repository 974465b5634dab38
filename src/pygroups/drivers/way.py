"""The state that one member keeps of a peer over UDP: the peer's place, its signs of life, and the questions to it.

Datagrams have no connection that could end.  The end of a process is proven by three refusals in a row, without a frame
of the peer in between, from the place that the view or the directory names.  It is also proven by the answer of another
process at that place.  An answer of the peer withdraws the proof.  A frame does not, because the peer may have sent it
before its end.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND, SECOND, Config

from .book import Reach
from .contacts import Contact
from .hello import NOT_WANTED, Welcome

REFUSALS: Final = 3  # in a row
ASK_PAUSE_MIN: Final = MILLISECOND  # between two questions; doubles
ASK_PAUSE_MAX: Final = 50 * MILLISECOND
NONCE_BYTES: Final = 8

Place = tuple[str, int]


class Home(Protocol):
    """The part of the network that a way uses."""

    config: Config
    loop: asyncio.AbstractEventLoop
    happened: Callable[[Event], None]
    count: Callable[..., None]

    def reaches(self, peer: Address) -> list[Reach]: ...
    def places_of(self, contact: Contact) -> list[Place]:
        """The numeric addresses to send to; none while a name is looked up, and if the lookup failed."""

    def say_hello(self, peer: Address, place: Place, nonce: bytes) -> None: ...
    def answered_at(self, peer: Address, place: Place) -> None: ...
    def refused(self, peer: Address, answer: Welcome) -> None: ...


class Way:
    """The state for one peer."""

    def __init__(self, home: Home, peer: Address) -> None:
        self.home = home
        self.peer = peer
        self.places: dict[Place, bool] = {}  # where the peer may listen, and whether a refusal there speaks for its end
        self.answered_from: Place | None = None  # where the peer answered last
        self.current = False  # `places` is what the book says now
        self.known = False  # the peer has answered: it knows where this member listens
        self.introduced_at = -1.0  # the loop's time at which this member said last who it is
        self.ended = False  # a refusal was told, and nothing was heard since
        self.dead = False  # the end was proven, and no answer came since
        self.nonce = secrets.token_bytes(NONCE_BYTES)  # of the questions: an answer to an older one proves nothing
        self.ask_until = 0.0  # the loop's time; 0 while nobody asks
        self.pause = ASK_PAUSE_MIN
        self.refusals = 0
        self.timer: asyncio.TimerHandle | None = None

    # -- where to

    def moved(self) -> None:
        """Note that the book, or the address of a host's name, may have changed."""
        self.current = False

    def _look_up(self) -> None:
        self.current = True
        found: dict[Place, bool] = {}
        for contact, stands in self.home.reaches(self.peer):
            places = self.home.places_of(contact)
            if not places:
                self.current = False
            for place in places:
                sure = len(places) == 1 or place == self.answered_from  # the peer may listen at one address of its name
                found.setdefault(place, stands and sure)
        self.places = found

    def place(self) -> Place | None:
        """The address for frames to the peer."""
        if not self.current:
            self._look_up()
        if not self.known:
            self._introduce()
        return self.answered_from if self.answered_from in self.places else next(iter(self.places), None)

    def _introduce(self) -> None:
        """Send a hello now and then, until the peer has answered, so that the peer knows this member's contact."""
        now = self.home.loop.time()
        if now - self.introduced_at >= ASK_PAUSE_MAX / SECOND:
            self.introduced_at = now
            self._say_hello()

    def _say_hello(self) -> None:
        for place in self.places:
            self.home.say_hello(self.peer, place, self.nonce)

    # -- asking

    @property
    def asking(self) -> bool:
        return self.ask_until > 0

    def probe(self) -> None:
        """Ask the peer for a sign of life, for `verify_timeout`, until an answer or three refusals arrive."""
        self.ask_until = self.home.loop.time() + self.home.config.verify_timeout / SECOND
        if self.timer is None:
            self.nonce = secrets.token_bytes(NONCE_BYTES)
            self.refusals, self.pause = 0, ASK_PAUSE_MIN
            self._ask()

    def _ask(self) -> None:
        self.timer = None
        if self.home.loop.time() >= self.ask_until:
            self.ask_until = 0.0
            self.home.count("unanswered questions")
            return
        if not self.current:
            self._look_up()
        self._say_hello()
        self.timer = self.home.loop.call_later(self.pause / SECOND, self._ask)
        self.pause = min(2 * self.pause, ASK_PAUSE_MAX)

    def stop(self) -> None:
        """End the questions."""
        self.ask_until = 0.0
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    # -- what came

    def heard(self) -> None:
        """A frame of the peer has arrived."""
        self.ended = False
        self.refusals = 0
        if self.dead and not self.asking:
            self.probe()

    def answered(self, welcome: Welcome, place: Place) -> None:
        """The process that listens at `place` has answered a question to this peer."""
        if welcome.listener == self.peer and not welcome.refusal:
            tell = self.asking or self.dead
            if self.places.get(place) is False:
                self.home.answered_at(self.peer, place)
            self.known, self.ended, self.dead = True, False, False
            if place != self.answered_from:
                self.answered_from, self.current = place, False
            self.stop()
            if tell:
                self.home.happened(Answered(self.peer))
        elif welcome.refusal in NOT_WANTED or not welcome.refusal:
            if self.places.get(place):
                self._is_dead()
        else:
            self.home.refused(self.peer, welcome)

    def refused(self, place: Place) -> None:
        """The host of the peer reports that no process listens at `place`."""
        if not self.places[place]:
            self.home.count("refusals at a place that only a hello named")
        elif self.asking:
            self.refusals += 1
            if self.refusals >= REFUSALS:
                self._is_dead()
        elif not self.ended and not self.dead:
            self.ended = True
            self.home.happened(Ended(self.peer))

    def _is_dead(self) -> None:
        tell = self.asking or not self.dead
        self.dead, self.known = True, False
        self.stop()
        if tell:
            self.home.happened(Dead(self.peer))
