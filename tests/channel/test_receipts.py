"""`until="delivered"` and wait() for messages to one member: the receiver has acknowledged them, or the caller is told
that nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pygroups import Message, Undelivered, Unknown, UsageError
from pygroups.channel.sending.receipts import LOST_MAX, NumberToOne, Receipts
from pygroups.core.address import Address
from pygroups.testing import Group, run
from tests.channel.socket_group import Reader, until

B = Address("B", "01")
Story = Callable[[Group, dict[str, Reader]], Awaitable[None]]


def among(names: str, story: Story, *, seed: int = 0) -> None:
    """Run `story` in a group of members that read everything."""

    async def main(group: Group) -> None:
        channels = [group.channel("g", name=name) for name in names]
        for channel in channels:
            await channel.__aenter__()
        readers = {channel.address.name: Reader(channel) for channel in channels}
        await group.settled()
        await story(group, readers)
        group.heal()
        for channel in channels:
            await channel.leave()
        await asyncio.gather(*[reader.task for reader in readers.values()], return_exceptions=True)

    run(main, seed=seed)


def address(readers: dict[str, Reader], name: str) -> Address:
    return readers[name].channel.address


def test_a_message_to_one_is_there_when_send_returns() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b = readers["A"], readers["B"]
        for index in range(100):
            began = group.now
            number = await a.channel.send(b"%d" % index, to=address(readers, "B"), until="delivered")
            assert number == index + 1
            assert group.now - began < 0.05
        assert b.payloads == [b"%d" % index for index in range(100)]
        assert readers["C"].payloads == []
        await a.channel.send(b"large" * 100_000, to=address(readers, "B"), until="delivered")
        assert b.payloads[-1] == b"large" * 100_000

    among("ABC", story)


def test_RSVP_01_to_one_although_frames_are_lost() -> None:
    """RSVP-01 for a message to one member: with every second frame lost, `send` returns when the receiver has it."""

    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a = readers["A"].channel

        async def sure(payload: bytes, name: str) -> None:
            await a.send(payload, to=address(readers, name), until="delivered", timeout=60)
            await until(lambda: payload in readers[name].payloads)  # acknowledged, and perhaps not read yet

        group.loss(0.5)
        tasks = []
        for index in range(40):
            tasks.append(asyncio.create_task(sure(b"%d" % index, "BCDE"[index % 4])))
            await asyncio.sleep(0.003)  # several runs to each receiver are on their way
        await asyncio.gather(*tasks)

    for seed in range(5):
        among("ABCDE", story, seed=seed)


def test_waiting_for_a_number_that_was_returned_before() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b, c = (readers[name].channel for name in "ABC")
        to_b = [a.send_nowait(b"x", to=b.address) for _ in range(3)]
        to_c = [a.send_nowait(b"x", to=c.address) for _ in range(2)]
        assert (to_b, to_c) == ([1, 2, 3], [1, 2]), "each receiver has a count of its own"
        await a.wait(to_b[2])
        await until(lambda: len(readers["B"].payloads) == 3)
        await a.wait(to_b[0], until="delivered", timeout=0)
        await a.wait(to_c[1], timeout=1)
        await until(lambda: len(readers["C"].payloads) == 2)
        to_itself = a.send_nowait(b"me", to=a.address)
        await a.wait(to_itself)
        await until(lambda: readers["A"].payloads == [b"me"])

    among("ABC", story)


def test_a_timeout_says_that_nobody_knows_and_the_wait_can_be_repeated() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b = readers["A"].channel, readers["B"].channel
        group.partition(["A"], ["B"])
        with pytest.raises(Unknown, match=r"message 1 was not delivered within 0.1 s") as caught:
            await a.send(b"x", to=b.address, until="delivered", timeout=0.1)
        assert isinstance(caught.value, TimeoutError)
        number = NumberToOne(caught.value.number, b.address)
        waiting = asyncio.create_task(a.wait(number))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        waiting.cancel()
        group.heal()
        await a.wait(number, timeout=5)
        assert readers["B"].payloads == [b"x"]

    among("AB", story)


def test_a_receiver_that_crashes_releases_the_sender() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b = readers["A"].channel, readers["B"].channel
        group.partition(["A"], ["B"])
        number = a.send_nowait(b"x", to=b.address)
        waiting = asyncio.create_task(a.send(b"y", to=b.address, until="delivered"))
        await asyncio.sleep(0.1)
        group.crash("B")
        with pytest.raises(Unknown, match=r"before message 2 was delivered; the message may still"):
            await waiting
        with pytest.raises(Unknown, match="before message 1 was delivered"):
            await a.wait(number)
        await group.settled()
        await asyncio.sleep(40)
        lost = [event for event in readers["A"].events if isinstance(event, Undelivered)]
        assert lost == [Undelivered(b.address, range(1, 3))]

    among("ABC", story)


def test_a_receiver_that_leaves_releases_the_sender() -> None:
    """UNI-19: with B gone the wait ends, and C gets everything."""

    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b, c = (readers[name].channel for name in "ABC")
        leaving = asyncio.create_task(b.leave())
        tasks = []
        while b.address in a.view.members:
            tasks.append(asyncio.create_task(a.send(b"x", to=b.address, until="delivered")))
            await asyncio.sleep(0.001)
        await leaving
        began = group.now
        for answer in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(answer, int | Unknown)
        assert group.now - began < 1
        for index in range(10):
            await a.send(b"%d" % index, to=c.address, until="delivered")
        assert readers["C"].payloads == [b"%d" % index for index in range(10)]

    among("ABC", story)


def test_the_own_leave_ends_the_wait() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a, b = readers["A"].channel, readers["B"].channel
        group.partition(["A"], ["B"])
        waiting = asyncio.create_task(a.send(b"x", to=b.address, until="delivered"))
        await asyncio.sleep(0.1)
        await a.leave()
        with pytest.raises(Unknown, match="before message 1 was delivered"):
            await waiting

    among("AB", story)


def test_stable_has_no_meaning_for_one_receiver() -> None:
    async def story(group: Group, readers: dict[str, Reader]) -> None:
        a = readers["A"].channel
        with pytest.raises(UsageError, match="use until='delivered' with to="):
            await a.send(b"x", to=a.address, until="stable")
        number = a.send_nowait(b"x", to=a.address)
        with pytest.raises(UsageError, match="use until='delivered' with to="):
            await a.wait(number, until="stable")
        assert [event for event in readers["A"].events if isinstance(event, Message)] == []

    among("AB", story)


def receipts() -> Receipts:
    return Receipts(lambda why, number: Unknown(why, number))


def wait(receipts: Receipts, number: int, members: tuple[Address, ...] = (B,)) -> None:
    asyncio.run(receipts.wait(NumberToOne(number, B), members))


def test_a_message_that_was_given_up_stays_unknown_when_later_ones_arrive() -> None:
    one = receipts()
    one.delivered(B, 5)
    one.undelivered(B, range(5, 8))
    one.delivered(B, 10)
    wait(one, 4)
    wait(one, 9)
    for number in (5, 7):
        with pytest.raises(Unknown, match="the connection to B@01 ended"):
            wait(one, number)
    with pytest.raises(Unknown, match="B@01 is not in the view"):
        wait(one, 9, ())


def test_what_is_remembered_of_a_receiver_is_bounded() -> None:
    one = receipts()
    for number in range(1, 2 * LOST_MAX):
        one.undelivered(B, range(2 * number, 2 * number + 1))
        one.delivered(B, 2 * number + 2)
    with pytest.raises(Unknown):
        wait(one, 1)  # too old to be known
    wait(one, 4 * LOST_MAX - 1)
    with pytest.raises(Unknown):
        wait(one, 4 * LOST_MAX - 2)


def test_a_wait_that_was_canceled_leaves_nothing_behind() -> None:
    async def story() -> None:
        one = receipts()
        tasks = [asyncio.create_task(one.wait(NumberToOne(number, B), (B,))) for number in (2, 1, 3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        one.delivered(B, 3)
        await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [True, True, False]
        one.end("the channel left")
        with pytest.raises(Unknown, match="the channel left"):
            await tasks[2]

    asyncio.run(story())
