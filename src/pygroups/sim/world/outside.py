"""The outside of a simulated process, as its turns touch it (core/turn.py): network, discovery, application."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.events import Block, Event, Excluded, Found, NewView, StateArrived, StateWanted, Undelivered
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.run import Run
from pygroups.core.top import Delivered, Reached
from pygroups.core.turn import Source

if TYPE_CHECKING:
    from .member import Member


class Wires:
    """The connections of `member`.  What becomes of a frame is the world's to say."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Hand frames to the kernel."""
        member = self.member
        send = member.world.send
        for dests, batch in frames:
            for dest in dests:
                send(member, dest, batch)

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """These can be reached from now on."""
        for peer in contacts:
            self.member.routes.setdefault(peer)

    def probe(self, peer: Address) -> None:
        """Connect anew."""
        self.member.world.connections.probe(self.member, peer)

    def disconnect(self, peer: Address) -> None:
        """A farewell, which means nothing to the peer."""


class Finder:
    """What `member` asks and says where processes find each other."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def find(self) -> None:
        """Look in a moment: what is found is what is there then."""
        world = self.member.world
        world.agenda.after(world.rng.randint(200, 2 * MILLISECOND), self._looks)

    def _looks(self) -> None:
        """The answer may be late, and is as old then."""
        member, world = self.member, self.member.world
        if member.ended:
            return
        found, now = world.directory.told(member.address, world.agenda.now, world.rng), world.agenda.now
        late = world.rng.randrange(SECOND) if world.directory.is_wrong("late", now) else 0
        world.agenda.after(late, self._found, found)

    def _found(self, found: Found) -> None:
        member = self.member
        if member.ended:
            return
        member.network.learn(found.members, Source.DIRECTORY)
        member.arrive(found)

    def announce(self, member: bool, invited: bool = False) -> None:
        """This process is a member, or is none; or a group is taking it in."""
        me = self.member.address
        self.member.world.directory.announce(me, me.name, member, invited)

    def installed(self, members: Collection[Address]) -> None:
        """There is one group."""


class Inbox:
    """The application at `member` is told here; so are the judge and the story."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def arrived(self, events: Sequence[Run | Event]) -> None:
        """All that a turn has for the application."""
        member = self.member
        world, judge = member.world, member.world.judge
        for event in events:
            if type(event) is Delivered:
                if world.story is not None:
                    world.tell(member.address.name, event)
                judge.delivered(member.address, event)
                member.app.given(event)
            elif type(event) is Reached:
                judge.reached(member.address, event.delivered, event.stable)
            elif isinstance(event, Event):
                self._news(event)

    def _news(self, event: Event) -> None:
        member, world = self.member, self.member.world
        world.tell(member.address.name, event)
        if isinstance(event, NewView):
            member.view, member.blocked = event.view, False
            if event.with_state:
                member.state.begins()
            world.judge.viewed(member.address, event)
        elif isinstance(event, Block):
            member.blocked = True
        elif isinstance(event, Excluded):
            member.ended = event.reason
            world.judge.stopped(member.address, event.reason, member.top.unknown())
            world.agenda.at(world.agenda.now, world.gone, member)
        elif isinstance(event, StateWanted):
            member.state.wanted(event)
        elif isinstance(event, StateArrived):
            member.state.arrived(event)
        elif isinstance(event, Undelivered):
            world.judge.undelivered(member.address, event.to, event.numbers)
