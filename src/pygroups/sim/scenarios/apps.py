"""An application of the user in the simulated world: the calls that it can make, and the events that it receives."""

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


class ReceivedMessage(NamedTuple):
    """A message as an application receives it."""

    origin: str  # the name of the sender
    number: int  # among the messages of this incarnation of the sender to all, or to this member alone, from 1
    payload: bytes

    @property
    def text(self) -> str:
        return self.payload.decode()


def messages(origin: Address, first: int, body: bytes) -> list[ReceivedMessage]:
    """The messages in the body of a run whose first message has the number `first`."""
    return [ReceivedMessage(origin.name, number, payload) for number, payload in enumerate(unpack(body), first)]


def messages_of(event: Event) -> list[ReceivedMessage]:
    """The messages that an event delivers; none for an event of another type."""
    if not isinstance(event, Delivered):
        return []
    assert event.run.origin is not None
    return messages(event.run.origin, event.run.first, event.run.body)


class Acting:
    """The calls of an application at its member.  Each incarnation has its own object."""

    def __init__(self, world: ScenarioWorld, member: SimulatedMember) -> None:
        self._world = world
        self._member = member

    @property
    def me(self) -> Address:
        """The address of this member."""
        return self._member.address

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self._world.agenda.now / SECOND

    def send(self, payload: bytes) -> None:
        """Multicast `payload` when the window has room, in the next turn at the earliest."""
        self._world.put(self._member, [payload], None)

    def tell(self, to: Address | str, payload: bytes) -> None:
        """Send `payload` to one member alone; a name means the process that runs under it.  Raises UsageError for a
        name without a process."""
        if isinstance(to, str):
            there = self._world.running.get(to)
            if there is None:
                raise UsageError(f"no process runs under the name {to}")
            to = there.address
        self._world.put(self._member, [payload], to)

    def leave(self) -> None:
        """Leave the group."""
        if not self._member.leaving:
            self._member.leave()

    def later(self, seconds: float, do: Callable[[], object]) -> None:
        """Call `do` after this time, if this incarnation still runs then."""
        self._world.agenda.after(int(seconds * SECOND), self._wake, do)

    def _wake(self, do: Callable[[], object]) -> None:
        if not self._member.ended:
            do()


class Actor(Protocol):
    """An application: it receives every event of its member's stack.

    `event` is one of `Delivered` (see `messages_of`; its `position` is -1 for a message to this member alone),
    `NewView`, `Block`, `Suspect`, `Unsuspect`, `Undelivered`, `Excluded`.
    """

    def on_event(self, event: Event) -> None: ...


ActorFactory = Callable[[Acting], Actor]
