"""Who may send when: the outbox over a top whose room is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, cast

import pytest

from pygroups.channel.sending.line import WaitingLine
from pygroups.channel.sending.outbox import Outbox
from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, NotSent, Unknown, WouldBlock
from pygroups.core.limits import ENTRY_BYTES, Config
from pygroups.core.top import Reached, Top

WINDOW = 1_000


class GivenTop:
    """Room as the test wants it; what is accepted uses it up."""

    def __init__(self) -> None:
        self.free = WINDOW
        self.accepted: list[bytes] = []

        class Env:
            config = Config(window=WINDOW, run_bytes=WINDOW)
            services = frozenset({"MEMBERSHIP"})
            sender_waits = False

        self.env = Env()

    def room(self, to: Address | None = None) -> int:
        return self.free

    def sent_bytes(self) -> int:
        return 0

    def accept(self, payload: bytes, to: Address | None = None) -> int:
        self.accepted.append(payload)
        self.free -= len(payload) + ENTRY_BYTES
        return len(self.accepted)

    def unknown(self) -> range:
        return range(1, len(self.accepted) + 1)


class Unread:
    """A program that has read none of its own messages."""

    gives_events = True
    own_read_bytes = 0

    def __init__(self) -> None:
        self.own_read = WaitingLine()

    def guard(self, waiting: asyncio.Future[None]) -> nullcontext[None]:
        return nullcontext()

    def guard_read(self, waiting: asyncio.Future[None], number: int) -> nullcontext[None]:
        return nullcontext()


def in_a_loop(story: Callable[[Outbox, GivenTop], Awaitable[None]]) -> None:
    async def main() -> None:
        top = GivenTop()
        outbox = Outbox(cast(Top, top), lambda: None, Unread(), lambda: (), lambda event: None)
        outbox.open()
        await story(outbox, top)

    asyncio.run(main())


def sending(outbox: Outbox, payload: bytes, **how: Any) -> asyncio.Task[int]:
    return asyncio.create_task(outbox.send(payload, None, how.get("until"), how.get("timeout")))


async def turn(outbox: Outbox) -> None:
    outbox.turned()
    for _ in range(3):
        await asyncio.sleep(0)


def test_nobody_is_woken_before_a_quarter_is_free() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        top.free = 0
        await turn(outbox)
        waiting = sending(outbox, b"x")
        await asyncio.sleep(0)
        for top.free in (10, 100, WINDOW // 4 - 1):
            await turn(outbox)
            assert not waiting.done()
        top.free = WINDOW // 4
        await turn(outbox)
        assert waiting.done()
        assert top.accepted == [b"x"]

    in_a_loop(story)


def test_a_payload_above_a_quarter_waits_for_its_own_size() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        top.free = 0
        await turn(outbox)
        waiting = sending(outbox, bytes(600))
        await asyncio.sleep(0)
        top.free = 604
        await turn(outbox)
        assert not waiting.done()
        top.free = 605
        await turn(outbox)
        assert waiting.done()

    in_a_loop(story)


def test_a_payload_as_large_as_the_window_can_be_sent() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        waiting = sending(outbox, bytes(WINDOW))  # with its length it is larger than the window
        await turn(outbox)
        await turn(outbox)
        assert waiting.done()

    in_a_loop(story)


def test_no_more_are_woken_than_there_is_room_for() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        top.free = 0
        await turn(outbox)
        tasks = [sending(outbox, bytes([number]) * 295) for number in range(4)]
        await asyncio.sleep(0)
        top.free = 620
        await turn(outbox)
        assert [task.done() for task in tasks] == [True, True, False, False]
        assert outbox.credit < 0  # whoever comes now stands in line
        with pytest.raises(WouldBlock):
            outbox.send_nowait(b"x", None)
        top.free = WINDOW
        await turn(outbox)
        assert [payload[0] for payload in top.accepted] == [0, 1, 2, 3]
        await turn(outbox)
        assert outbox.credit == top.free

    in_a_loop(story)


def test_room_of_one_that_was_woken_and_cancelled_goes_to_the_next() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        top.free = 0
        await turn(outbox)
        first, second = sending(outbox, bytes(500)), sending(outbox, bytes(600))
        await asyncio.sleep(0)
        top.free = 700
        outbox.turned()  # wakes the first, which has not run when it is cancelled
        first.cancel()
        await turn(outbox)
        await turn(outbox)
        assert first.cancelled()
        assert second.done()
        assert [len(payload) for payload in top.accepted] == [600]
        assert outbox.queue.reserved == 0

    in_a_loop(story)


def test_waiting_for_arrival_ends_with_what_is_reached() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        here = [sending(outbox, b"x", until="delivered") for _ in range(3)]
        await asyncio.sleep(0)
        stable = asyncio.create_task(outbox.wait(2, "stable", None))
        await asyncio.sleep(0)
        outbox.on_reached(Reached(3, 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in (*here, stable)] == [True, True, False, False]
        outbox.on_reached(Reached(3, 3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in (*here, stable)] == [True, True, False, True]
        here[2].cancel()

    in_a_loop(story)


def test_the_end_tells_each_what_is_known_of_its_message() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        accepted = sending(outbox, bytes(900), until="stable")
        await turn(outbox)
        waiting = sending(outbox, bytes(500))
        await asyncio.sleep(0)
        outbox.give_up("the end")
        with pytest.raises(Unknown, match="the end before message 1 was stable"):
            await accepted
        with pytest.raises(NotSent, match="the message was not sent: the end"):
            await waiting
        with pytest.raises(ChannelClosed, match="the end"):
            await outbox.send(b"x", None, None, None)
        with pytest.raises(Unknown):
            await outbox.wait(1, "stable", None)
        outbox.turned()
        assert outbox.credit < 0

    in_a_loop(story)


@pytest.mark.parametrize("many", [False, True])
def test_who_was_woken_when_the_channel_closes_has_not_sent(many: bool) -> None:
    """The end may come between the turn that made room and the pass of the loop in which the sender runs."""

    async def story(outbox: Outbox, top: GivenTop) -> None:
        top.free = 0
        await turn(outbox)
        waiting = asyncio.ensure_future(
            outbox.send_many([b"x"], None, None) if many else outbox.send(b"x", None, None, None)
        )
        await asyncio.sleep(0)
        top.free = WINDOW
        outbox.turned()
        outbox.give_up("the channel left its group (excluded)")
        with pytest.raises(NotSent, match="the message was not sent"):
            await waiting
        assert top.accepted == []

    in_a_loop(story)


def test_the_stack_knows_whether_a_sender_waits() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        await sending(outbox, b"x")
        assert not top.env.sender_waits
        top.free = 0
        await turn(outbox)
        waiting, patient = sending(outbox, b"y"), sending(outbox, b"z")
        await turn(outbox)
        assert top.env.sender_waits
        waiting.cancel()
        await turn(outbox)
        assert top.env.sender_waits
        top.free = WINDOW
        await turn(outbox)
        await patient
        assert not top.env.sender_waits

    in_a_loop(story)
