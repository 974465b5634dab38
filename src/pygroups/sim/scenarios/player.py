"""One member in a scenario: what it is told to do, and what it saw."""

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
from .apps import Message, messages
from .script import ScenarioWorld, Script

if TYPE_CHECKING:
    from pygroups.core.view import ViewId

Payloads = int | str | bytes | Iterable[str | bytes]


class Seen(msgspec.Struct):
    """What one life saw."""

    views: list[tuple[str, ...]] = []
    ids: list[ViewId] = []
    delivered: list[Message] = []
    received: list[Message] = []
    history: list[str] = []
    undelivered: dict[str, list[int]] = {}
    unknown: list[int] | None = None
    accepted: int = 0  # own multicasts
    landed: int = 0  # own multicasts up to this number were delivered here
    stable: int = 0  # and those everywhere


class Recorder(Check):
    """Writes down what every life saw."""

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
    """A member by its name: the life that runs, or the last one.  Everything it says is of that life."""

    def __init__(self, world: ScenarioWorld, recorder: Recorder, name: str) -> None:
        self.name = name
        self._world = world
        self._recorder = recorder

    # -- what it does

    def sends(self, what: Payloads, every: float = 0.0, size: int = 0) -> None:
        """Its application multicasts: one text, several, or so many that are called A1, A2 ... after the name.

        `every`: seconds between two of them; without it all are sent at once.  `size`: bytes that each has at least.
        What does not fit the window waits; nothing is sent any more once it leaves or ends.
        """
        self._put(what, every, size, None)

    def tells(self, to: str, what: Payloads, every: float = 0.0, size: int = 0) -> None:
        """The same, to the member `to` alone."""
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
        """What still waits for room in the window is not sent."""
        self.member.app.orders.clear()

    def reads(self, does: bool = True) -> None:
        """Its application consumes what it is given, or lets it lie from now on: then windows of others fill up."""
        member = self.member
        self._script(member).reads = does
        member.arrive(lambda: None)

    def forgets(self, peer: str) -> None:
        """It closes its connection with `peer`, as an application may."""
        self.asks(Forget(self._address_of(peer)))

    def asks(self, event: Event) -> None:
        """Its application asks its stack for something: `event` goes down from the top, in the next turn."""
        self.member.ask(event)

    def hears(self, event: Event) -> None:
        """Its driver tells its stack something: `event` comes up from the bottom, in the next turn."""
        self._world.judge.disturbed()
        self.member.arrive(event)

    # -- what it saw

    @property
    def view(self) -> tuple[str, ...]:
        """The names of the members of its view, in rank order; nothing before the first one."""
        views = self.views
        return views[-1] if views else ()

    @property
    def views(self) -> list[tuple[str, ...]]:
        """All its views."""
        return self._seen.views

    @property
    def view_id(self) -> ViewId | None:
        """The id of its view."""
        ids = self._seen.ids
        return ids[-1] if ids else None

    @property
    def delivered(self) -> list[Message]:
        """The multicasts it delivered, in their order."""
        return self._seen.delivered

    @property
    def texts(self) -> list[str]:
        """The payloads of those, as text."""
        return [message.text for message in self.delivered]

    def delivered_from(self, name: str) -> list[int]:
        """The numbers of the multicasts of `name` that it delivered."""
        return [message.number for message in self.delivered if message.origin == name]

    @property
    def received(self) -> list[Message]:
        """The messages sent to it alone, in the order it was given them."""
        return self._seen.received

    def received_from(self, name: str) -> list[int]:
        """The numbers of those that `name` sent."""
        return [message.number for message in self.received if message.origin == name]

    @property
    def history(self) -> list[str]:
        """Views, as `[A B C]`, and multicasts, by their texts, in the order it was told of them."""
        return self._seen.history

    @property
    def undelivered(self) -> dict[str, list[int]]:
        """The numbers of own messages to single members that it was told were not acknowledged, per receiver."""
        return self._seen.undelivered

    @property
    def landed(self) -> int:
        """Its own multicasts up to this number were delivered here (`until="delivered"`)."""
        return self._seen.landed

    @property
    def stable(self) -> int:
        """Its own multicasts up to this number were delivered by every member (`until="stable"`)."""
        return self._seen.stable

    @property
    def accepted(self) -> int:
        """So many own multicasts went into its stack."""
        return self._seen.accepted

    @property
    def unsent(self) -> int:
        """So many payloads wait until the window lets them be sent."""
        return len(self.member.app.orders)

    @property
    def unknown(self) -> list[int] | None:
        """Once it has left: the numbers of own multicasts whose fate it cannot know.  None for who crashed."""
        return self._seen.unknown

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return not self.member.ended

    @property
    def ended(self) -> str:
        """Why its life is over: left, excluded, crashed ...; nothing while it runs."""
        return self.member.ended

    @property
    def gauges(self) -> dict[str, int]:
        """What its layers hold, as layer.name."""
        return self.member.stack.gauges()

    @property
    def holds(self) -> dict[str, int]:
        """The same without zeros: nothing, when all is quiet."""
        return {name: value for name, value in self.gauges.items() if value}

    @property
    def counters(self) -> Counter[str]:
        """What its layers counted."""
        return Counter(self.member.env.counters)

    @property
    def drops(self) -> Counter[str]:
        """What its layers discarded, by reason."""
        return Counter({name[5:]: count for name, count in self.counters.items() if name.startswith("drop ")})

    @property
    def journal(self) -> bytes:
        """The segment of its journal so far (docs/journal.md); needs scenario(journal=True)."""
        journal = self.member.journal
        if journal is None:
            raise UsageError("this scenario keeps no journals: write scenario(..., journal=True)")
        return journal.getvalue()

    # -- inside

    @property
    def address(self) -> Address:
        """Its address."""
        return self.member.address

    @property
    def member(self) -> SimulatedMember:
        """The simulated process, with `stack`, `env` and what else there is."""
        return self._world.life(self.name)

    @property
    def _seen(self) -> Seen:
        return self._recorder.of(self.address)

    def _script(self, member: SimulatedMember) -> Script:
        assert isinstance(member.app, Script)
        return member.app

    def _address_of(self, name: str) -> Address:
        return self._world.life(name).address
