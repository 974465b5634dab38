"""One member in a scenario: its actions, and its observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event, Forget
from pygroups.core.limits import SECOND

from ..promises.facts import Check, Delivery, UnicastDelivery, Viewed
from ..world.member import SimulatedMember
from .apps import ReceivedMessage, messages
from .script import ScenarioWorld, Script

if TYPE_CHECKING:
    from pygroups.core.view import ViewId

Payloads = int | str | bytes | Iterable[str | bytes]


class Seen(msgspec.Struct):
    """The observations of one incarnation."""

    views: list[tuple[str, ...]] = []
    ids: list[ViewId] = []
    delivered: list[ReceivedMessage] = []
    received: list[ReceivedMessage] = []
    history: list[str] = []
    undelivered: dict[str, list[int]] = {}
    unknown: list[int] | None = None
    accepted: int = 0  # own multicasts
    landed: int = 0  # own multicasts up to this number were delivered here
    stable: int = 0  # own multicasts up to this number were delivered everywhere
    primary: bool = False  # the hint of its view


class ObservationRecorder(Check):
    """Records the observations of every incarnation."""

    def __init__(self) -> None:
        self.lives: dict[Address, Seen] = {}

    def of(self, member: Address) -> Seen:
        return self.lives.setdefault(member, Seen())

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None:
            self.of(member).accepted = number

    def viewed(self, view: Viewed) -> None:
        seen = self.of(view.member)
        names = tuple(member.name for member in view.members)
        seen.views.append(names)
        seen.ids.append(view.id)
        seen.primary = view.primary
        seen.history.append(f"[{' '.join(names)}]")

    def delivered(self, delivery: Delivery) -> None:
        seen = self.of(delivery.member)
        run = messages(delivery.origin, delivery.first, delivery.body)
        seen.delivered += run
        seen.history += [message.payload.decode(errors="replace") for message in run]

    def received(self, delivery: UnicastDelivery) -> None:
        self.of(delivery.member).received += messages(delivery.origin, delivery.first, delivery.body)

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        self.of(member).undelivered.setdefault(to.name, []).extend(numbers)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        seen = self.of(member)
        seen.landed, seen.stable = delivered - 1, stable - 1

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.of(member).unknown = None if unknown is None else list(unknown)


class Player:
    """A member by its name.  All methods concern the incarnation that runs, or the last one."""

    def __init__(self, world: ScenarioWorld, recorder: ObservationRecorder, name: str) -> None:
        self.name = name
        self._world = world
        self._recorder = recorder

    # -- actions

    def sends(self, what: Payloads, every: float = 0.0, size: int = 0) -> None:
        """Let the application multicast one text, several texts, or a number of texts called A1, A2 ... after the name.

        `every` is the time in seconds between two sends; by default all are sent at once.  `size` is the least size of
        each payload in bytes.  A payload waits when the window has no room.  The application sends nothing more after
        its member leaves or ends.
        """
        self._put(what, every, size, None)

    def tells(self, to: str, what: Payloads, every: float = 0.0, size: int = 0) -> None:
        """Let the application send to the member `to` alone; the other parameters are those of `sends`."""
        self._put(what, every, size, self._address_of(to))

    def _put(self, what: Payloads, every: float, size: int, to: Address | None) -> None:
        member, world = self.member, self._world
        payloads = [payload.ljust(size, b".") for payload in self._payloads(member, what)]
        if not every:
            world.put(member, payloads, to)
            return
        for number, payload in enumerate(payloads):
            world.plan(int(number * every * SECOND), member, payload, to)

    def _payloads(self, member: SimulatedMember, what: Payloads) -> list[bytes]:
        if isinstance(what, int):
            script = self._script(member)
            first = script.numbered + 1
            script.numbered += what
            return [f"{self.name}{number}".encode() for number in range(first, first + what)]
        texts = [what] if isinstance(what, str | bytes) else what
        return [text.encode() if isinstance(text, str) else text for text in texts]

    def stops_sending(self) -> None:
        """Drop the payloads that still wait for room in the window."""
        self.member.app.orders.clear()

    def reads(self, does: bool = True) -> None:
        """Let the application consume its messages, or leave them unread from now on: then windows of other members
        fill up."""
        member = self.member
        self._script(member).reads = does
        member.arrive(lambda: None)

    def forgets(self, peer: str) -> None:
        """Let the application close its connection with `peer`."""
        self.asks(Forget(self._address_of(peer)))

    def asks(self, event: Event) -> None:
        """Let the application send a request to its stack: `event` goes down from the top, in the next turn."""
        self.member.ask(event)

    def hears(self, event: Event) -> None:
        """Let the driver send an event to its stack: `event` goes up from the bottom, in the next turn."""
        self._world.judge.disturbed()
        self.member.arrive(event)

    # -- observations

    @property
    def view(self) -> tuple[str, ...]:
        """The names of the members of this member's view, in rank order; empty before the first view."""
        views = self.views
        return views[-1] if views else ()

    @property
    def views(self) -> list[tuple[str, ...]]:
        """All views of the member."""
        return self._seen.views

    @property
    def primary(self) -> bool:
        """Whether this member's view is primary."""
        return self._seen.primary

    @property
    def view_id(self) -> ViewId | None:
        """The id of this member's view; None before the first view."""
        ids = self._seen.ids
        return ids[-1] if ids else None

    @property
    def delivered(self) -> list[ReceivedMessage]:
        """The multicasts that the member delivered, in their order."""
        return self._seen.delivered

    @property
    def texts(self) -> list[str]:
        """The payloads of the delivered multicasts, as text."""
        return [message.text for message in self.delivered]

    def delivered_from(self, name: str) -> list[int]:
        """The numbers of the delivered multicasts of `name`."""
        return [message.number for message in self.delivered if message.origin == name]

    @property
    def received(self) -> list[ReceivedMessage]:
        """The messages that were sent to this member alone, in the order of their delivery."""
        return self._seen.received

    def received_from(self, name: str) -> list[int]:
        """The numbers of the messages that `name` sent to this member alone."""
        return [message.number for message in self.received if message.origin == name]

    @property
    def history(self) -> list[str]:
        """Views, as `[A B C]`, and multicasts, by their texts, in the order of the events."""
        return self._seen.history

    @property
    def undelivered(self) -> dict[str, list[int]]:
        """Per receiver, the numbers of own unicasts that were reported as not acknowledged."""
        return self._seen.undelivered

    @property
    def landed(self) -> int:
        """The number up to which this member delivered its own multicasts (`until="delivered"`)."""
        return self._seen.landed

    @property
    def stable(self) -> int:
        """The number up to which every member delivered this member's multicasts (`until="stable"`)."""
        return self._seen.stable

    @property
    def accepted(self) -> int:
        """The number of own multicasts that the stack accepted."""
        return self._seen.accepted

    @property
    def unsent(self) -> int:
        """The number of payloads that wait for room in the window."""
        return len(self.member.app.orders)

    @property
    def unknown(self) -> list[int] | None:
        """After the member has left: the numbers of own multicasts with an unknown fate.  The value is None after a
        crash."""
        return self._seen.unknown

    @property
    def runs(self) -> bool:
        """Whether the process runs."""
        return not self.member.ended

    @property
    def ended(self) -> str:
        """The reason why the incarnation ended, such as left, excluded or crashed; empty while it runs."""
        return self.member.ended

    @property
    def why_ended(self) -> str:
        """The sentence with which the group excluded or refused the member; "" without one."""
        return self._world.lives[self.address].why_ended

    @property
    def gauges(self) -> dict[str, int]:
        """The sizes of the layers' buffers, as layer.name."""
        return self.member.stack.gauges()

    @property
    def holds(self) -> dict[str, int]:
        """The gauges without zeros: empty when the group has settled."""
        return {name: value for name, value in self.gauges.items() if value}

    @property
    def counters(self) -> Counter[str]:
        """The counters of the layers."""
        return Counter(self.member.env.counters)

    @property
    def drops(self) -> Counter[str]:
        """The numbers of items that the layers discarded, by reason."""
        return Counter({name[5:]: count for name, count in self.counters.items() if name.startswith("drop ")})

    @property
    def journal(self) -> bytes:
        """The segment of the member's journal so far (docs/journal.md); needs scenario(journal=True)."""
        journal = self.member.journal
        if journal is None:
            raise UsageError("this scenario keeps no journals: write scenario(..., journal=True)")
        return journal.getvalue()

    # -- inside

    @property
    def address(self) -> Address:
        """The address of the member."""
        return self.member.address

    @property
    def member(self) -> SimulatedMember:
        """The simulated process, with `stack`, `env` and its other attributes."""
        return self._world.life(self.name)

    @property
    def _seen(self) -> Seen:
        return self._recorder.of(self.address)

    def _script(self, member: SimulatedMember) -> Script:
        assert isinstance(member.app, Script)
        return member.app

    def _address_of(self, name: str) -> Address:
        return self._world.life(name).address
