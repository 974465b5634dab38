"""What processes learn from connections: that one ended, and what came of connecting anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.events import Answered, Dead, Ended
from pygroups.core.limits import MILLISECOND

from .member import Member

if TYPE_CHECKING:
    from .world import World


class Connections:
    """Carries evidence between the processes of a world, over the links that frames take."""

    def __init__(self, world: World) -> None:
        self.world = world

    def probe(self, member: Member, peer: Address) -> None:
        """Connect to where `peer` listened: nothing, a refusal, or whoever lives there answers when it runs."""
        world = self.world
        world.agenda.after(world.network.delay(member.address.name, peer.name), self._probe_arrives, member, peer)

    def _probe_arrives(self, member: Member, peer: Address) -> None:
        world = self.world
        if world.waits(member.address.name, peer.name, self._probe_arrives, member, peer):
            return
        if world.network.refuses(member.address.name, peer.name):
            delay = world.network.delay(peer.name, member.address.name)
            world.agenda.after(delay, self._refused, member, peer)
            return
        here = world.beside.get(peer) or world.running.get(peer.name)
        if not world.network.connects(member.address.name, peer.name):
            return
        if here is None:
            self._answer_probe(member, Dead(peer))
        else:
            answer = Answered(peer) if here.address == peer else Dead(peer)
            here.arrive(lambda: self._answer_probe(member, answer))

    def _answer_probe(self, member: Member, answer: Answered | Dead) -> None:
        world = self.world
        delay = world.network.delay(answer.peer.name, member.address.name)
        world.agenda.after(delay, self._probe_answered, member, answer)

    def _probe_answered(self, member: Member, answer: Answered | Dead) -> None:
        world = self.world
        if world.waits(answer.peer.name, member.address.name, self._probe_answered, member, answer):
            return
        if not member.ended and world.network.connects(member.address.name, answer.peer.name):
            member.arrive(answer)

    def _refused(self, member: Member, peer: Address) -> None:
        """Nobody listens where `peer` does, it seems."""
        if not member.ended and self.world.network.is_open(peer.name, member.address.name):
            member.arrive(Dead(peer))

    def reset(self, src: str, dest: str) -> None:
        """Whoever sends from one host to another learns that its connection has ended."""
        world = self.world
        member, peer = world.running.get(src), world.running.get(dest)
        if member is not None and peer is not None:
            world.agenda.after(world.rng.randint(0, 2 * MILLISECOND), self._hang_up, member, peer.address)

    def _hang_up(self, member: Member, peer: Address) -> None:
        if not member.ended and self.world.network.is_open(peer.name, member.address.name):
            member.arrive(Ended(peer))

    def lose(self, one: Member, other: Member) -> None:
        """The connection between two that live ends; both can connect again."""
        world = self.world
        for member, peer in ((one, other), (other, one)):
            world.agenda.after(world.rng.randint(0, 2 * MILLISECOND), self._hang_up, member, peer.address)
