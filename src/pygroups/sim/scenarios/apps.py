"""A user's own application in the simulated world: what it may do, and what it hears."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.limits import SECOND
from pygroups.core.run import unpack
from pygroups.core.top import Delivered

from ..world.member import SimulatedMember

if TYPE_CHECKING:
    from .script import ScenarioWorld


class Message(NamedTuple):
    """A message as an application was given it."""

    origin: str  # the name of who sent it
    number: int  # of this origin's messages of this life, to all or to this member alone, from 1
    payload: bytes

    @property
    def text(self) -> str:
        return self.payload.decode()


def messages(origin: Address, first: int, body: bytes) -> list[Message]:
    """The messages in the body of a run whose first one has this number."""
    return [Message(origin.name, number, payload) for number, payload in enumerate(unpack(body), first)]


def messages_of(event: Event) -> list[Message]:
    """The messages that an event delivers; none if it is another event."""
    if not isinstance(event, Delivered):
        return []
    assert event.run.origin is not None
    return messages(event.run.origin, event.run.first, event.run.body)


class Acting:
    """What an application may do at its member.  One for each life."""

    def __init__(self, world: ScenarioWorld, member: SimulatedMember) -> None:
        self._world = world
        self._member = member

    @property
    def me(self) -> Address:
        """Its address."""
        return self._member.address

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self._world.agenda.now / SECOND

    def send(self, payload: bytes) -> None:
        """Multicast `payload` as soon as the window has room, in the next turn at the earliest."""
        self._world.put(self._member, [payload], None)

    def tell(self, to: Address | str, payload: bytes) -> None:
        """Send `payload` to one member alone; a name means the life that runs under it."""
        if isinstance(to, str):
            there = self._world.running.get(to)
            if there is None:
                raise UsageError(f"nobody runs under the name {to}")
            to = there.address
        self._world.put(self._member, [payload], to)

    def leave(self) -> None:
        """Leave the group."""
        if not self._member.leaving:
            self._member.leave()

    def later(self, seconds: float, do: Callable[[], object]) -> None:
        """Call `do` when so much time has passed, if this life still runs then."""
        self._world.agenda.after(int(seconds * SECOND), self._wake, do)

    def _wake(self, do: Callable[[], object]) -> None:
        if not self._member.ended:
            do()


class Actor(Protocol):
    """An application: it is told of everything that its member's stack says.

    `event` is one of `Delivered` (see `messages_of`; its `position` is -1 for what was sent to this member alone),
    `NewView`, `Block`, `Suspect`, `Unsuspect`, `Undelivered`, `Excluded`.
    """

    def on_event(self, event: Event) -> None: ...


ActorFactory = Callable[[Acting], Actor]
