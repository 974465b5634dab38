"""Many PBCAST layers in one view, in virtual time: no other layer, and a network that loses frames."""

from __future__ import annotations

import heapq
from itertools import count
from random import Random
from typing import Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Ended
from pygroups.core.events import Event, Gap, NewView
from pygroups.core.layer import Env
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.pbcast.heads import Gossip
from pygroups.layers.pbcast.layer import Pbcast

TRIP: Final = 2 * MILLISECOND
FRAME: Final = 150  # bytes of the headers of a frame, about


class Received(NamedTuple):
    """What all members received: gossips, their bytes, and the bytes of requests and answers."""

    gossips: int
    gossip_bytes: int
    repair_bytes: int

    def rates(self, before: Received, members: int, seconds: float) -> tuple[float, float]:
        """Per member and second since `before`: the gossips, and the bytes of gossips, requests and answers."""
        many = members * seconds
        size = self.gossip_bytes + self.repair_bytes - before.gossip_bytes - before.repair_bytes
        return (self.gossips - before.gossips) / many, size / many


class Node:
    """One member."""

    def __init__(self, world: GossipWorld, me: Address, config: Config) -> None:
        self.world = world
        self.me = me
        self.env = Env(me, 0, Random(f"{world.seed} {me.name}"), config)
        self.layer = Pbcast(self.env)
        self.next: dict[Address, int] = {}  # per origin, the number after the last delivered or announced message
        self.delivered = 0
        self.missed = 0
        self.gossips = self.gossip_bytes = self.frames = 0  # received
        self.repair_bytes = 0  # received in requests and in the answers to them
        self.sent = 0  # own messages
        self.runs = True
        self.due = -1

    def send(self, size: int = 100) -> None:
        """Multicast one message."""
        self.sent += 1
        self.env.now = self.world.now
        self.layer.down(Run(self.me, None, (), self.me, self.sent, 0, 1, pack([bytes(size)])))
        self.settle()

    def install(self, view: AgreedView, joined: tuple[Address, ...] = (), *, is_new: bool = True) -> None:
        """Give the layer a view."""
        self.env.now = self.world.now
        previous = None if is_new else ViewId(0, view.members[0])
        self.layer.up_event(NewView(view, previous, view.members, joined, (), True, None))
        self.settle()

    def receive(self, run: Run) -> None:
        self.frames += 1
        if isinstance(run.head, Gossip):
            self.gossips += 1
            self.gossip_bytes += FRAME + len(msgspec.msgpack.encode(run.head))
        elif run.dest is not None:
            self.repair_bytes += FRAME + len(msgspec.msgpack.encode(run.head)) + len(run.body)
        self.env.now = self.world.now
        self.layer.up(run)
        self.layer.end_turn()
        self.settle()

    def timer(self) -> None:
        self.due = -1
        if self.runs:
            self.env.now = self.world.now
            if self.layer.wake <= self.world.now:
                self.layer.timer()
            self.settle()

    def settle(self) -> None:
        """Hand out what the layer has made, and set its timer."""
        layer, world = self.layer, self.world
        below, layer.below = layer.below, []
        for item in below:
            if isinstance(item, Run):
                world.carry(self, item)
        above, layer.above = layer.above, []
        for one in above:
            self._take(one)
        if layer.wake < 1 << 61 and not 0 <= self.due <= layer.wake:
            self.due = layer.wake
            world.at(layer.wake, self)

    def _take(self, item: Run | Event) -> None:
        if isinstance(item, Run):
            assert item.origin is not None
            assert item.first == self.next.get(item.origin, 1), "a message out of order"
            self.next[item.origin] = item.next
            self.delivered += item.count
        elif isinstance(item, Gap):
            assert item.first == self.next.get(item.origin, 1), "a gap out of order"
            self.next[item.origin] = item.next
            self.missed += item.count
        elif isinstance(item, NewView) and item.starts is not None:
            self.next = dict(item.starts)
        assert not isinstance(item, Ended)


class GossipWorld:
    """`members` nodes in one view; each frame is lost with the probability `loss`."""

    def __init__(self, members: int, loss: float, seed: int = 1, **config: int) -> None:
        self.seed = seed
        self.loss = loss
        self.rng = Random(seed)
        self.now = 0
        self.agenda: list[tuple[int, int, Node, Run | None]] = []
        self.order = count()
        self.lost = self.carried = 0
        self.hops: dict[tuple[int, int], dict[Address, int]] = {}  # per gossip, how often it was passed on to a member
        addresses = tuple([Address(f"M{rank}", f"{rank:016x}") for rank in range(members)])
        self.nodes = [Node(self, address, Config(**config)) for address in addresses]
        self.by_address = {node.me: node for node in self.nodes}
        self.view = AgreedView(ViewId(1, addresses[0]), addresses, tuple([f"m:{rank}" for rank in range(members)]))
        for node in self.nodes:
            node.layer.view = self.view  # as if an earlier view had made this node a member
            node.install(self.view)

    def age(self) -> None:
        """Let the group be old: each member is somewhere in a pause between two gossips, a longer pause more likely.

        In a new group all pauses begin at once, and for twice their mean only half as many gossips come.
        """
        longest = 2 * self.nodes[0].env.config.desired_avg_gossip * len(self.nodes)
        for node in self.nodes:
            node.layer.gossip_at = node.layer.wake = (
                self.now + 1 + int(longest * self.rng.random() ** 0.5 * self.rng.random())
            )
            node.settle()

    def at(self, when: int, node: Node, run: Run | None = None) -> None:
        heapq.heappush(self.agenda, (max(when, self.now), next(self.order), node, run))

    def carry(self, sender: Node, run: Run) -> None:
        """Take a frame to its receivers, or lose it."""
        to = [node for node in self.nodes if node is not sender] if run.dest is None else [self.by_address[run.dest]]
        for node in to:
            self.carried += 1
            if self.rng.random() < self.loss:
                self.lost += 1
                continue
            if isinstance(run.head, Gossip):
                hops = self.hops.setdefault((run.head.gossiper, run.head.number), {sender.me: 0})
                hops.setdefault(node.me, hops[sender.me] + 1)
            arrived = run if run.dest is None else run.readdressed(run.src, node.me)
            self.at(self.now + self.rng.randrange(1, TRIP), node, arrived)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + int(seconds * SECOND)
        while self.agenda and self.agenda[0][0] <= until:
            self.now, _, node, run = heapq.heappop(self.agenda)
            if run is None:
                if node.due == self.now:
                    node.timer()
            elif node.runs:
                node.receive(run)
        self.now = until

    def send(self, messages: int, senders: int, seconds: float) -> None:
        """Multicast `messages`, from `senders` in turn, within some time."""
        chosen = self.rng.sample(self.nodes, senders)
        for number in range(messages):
            chosen[number % senders].send()
            self.run(seconds / messages)

    def received(self) -> Received:
        """The sums over all members so far."""
        nodes = self.nodes
        return Received(
            sum([node.gossips for node in nodes]),
            sum([node.gossip_bytes for node in nodes]),
            sum([node.repair_bytes for node in nodes]),
        )

    def share_missed(self) -> float:
        """The share of (message, member) that was not delivered, over the living members."""
        wanted = got = 0
        for node in self.nodes:
            if node.runs:
                wanted += sum([one.sent for one in self.nodes])
                got += node.delivered
        return 1 - got / wanted
