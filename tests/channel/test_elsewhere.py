"""MRG-31 through a whole channel: a sender whose message only the other side of a split delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pygroups import Channel, DeliveredElsewhere, Event, Gap, Message
from pygroups.channel.sending.missing import Missing
from pygroups.core.limits import GAPS_MAX
from pygroups.layers.sequencer import Sequencer
from pygroups.testing import Group

LARGE = bytes(300_000)  # many pieces


class OrdersNothingAlone(Sequencer):
    """A sequencer that orders nothing while its member is alone, as if each message were on its way to another one."""

    __slots__ = ()

    def end_turn(self) -> None:
        if self.view is None or len(self.view.members) > 1:
            super().end_turn()


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.0001)


def orders_nothing_alone(group: Group, name: str) -> None:
    watch = next(watch for watch in group._platform.living() if watch.me.name == name)
    layers = watch.session.member.stack.layers
    next(layer for layer in layers if isinstance(layer, Sequencer)).__class__ = OrdersNothingAlone


def test_MRG_31_a_sender_whose_message_only_the_other_side_delivered() -> None:
    """A orders a message of D, and D is cut off before the order reaches D.  D orders nothing until the views merge.
    `send` raises DeliveredElsewhere, D's application gets a Gap, and nobody delivers the message twice.  A large
    payload right behind it was delivered nowhere, and comes after the merge."""

    async def story(group: Group) -> None:
        read: dict[str, list[Event]] = {name: [] for name in "ABCD"}
        channels: dict[str, Channel] = {}

        async def program(name: str) -> None:
            async with Channel("g") as channels[name]:
                async for event in channels[name]:
                    read[name].append(event)

        def payloads(name: str) -> list[bytes]:
            return [event.payload for event in read[name] if isinstance(event, Message)]

        for name in "ABCD":
            group.start(name, program(name))
            await group.settled()
        d = channels["D"]
        await d.send(b"first", until="stable")
        sending = asyncio.create_task(d.send(b"elsewhere", until="delivered"))
        await until(lambda: b"elsewhere" in payloads("A"))
        group.partition(["D"])
        orders_nothing_alone(group, "D")
        large = asyncio.create_task(d.send(LARGE, until="stable"))
        await until(lambda: sorted(group.views()) == [("A", "B", "C"), ("D",)])
        assert not sending.done()
        group.heal()
        await group.settled(one=True)
        with pytest.raises(DeliveredElsewhere) as raised:
            await sending
        assert raised.value.number == 2
        gaps = [event for event in read["D"] if isinstance(event, Gap)]
        assert [(gap.sender, gap.first, gap.count) for gap in gaps] == [(d.address, 2, 1)]
        assert await large == 3
        await d.send(b"last", until="stable")
        await group.settled(one=True)
        await asyncio.sleep(1)
        assert [payloads(name) for name in "ABC"] == [[b"first", b"elsewhere", LARGE, b"last"]] * 3
        assert payloads("D") == [b"first", LARGE, b"last"]
        for name in "DCBA":
            await channels[name].leave()

    group = Group()
    group.run(story, group)


def test_the_gaps_of_one_merge_are_remembered_as_one() -> None:
    """They name other members, and are one merge of the GAPS_MAX that a sender remembers."""
    missing = Missing()
    missing.add(range(1, 3), ())
    for number in range(GAPS_MAX):
        missing.add(range(10 + number, 11 + number), ())
    for number in (2, 10, 9 + GAPS_MAX):
        with pytest.raises(DeliveredElsewhere):
            missing.check(number)
    missing.check(5)
