"""A path that drops large packets: the heads that show that a process runs arrive, and its messages do not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from pygroups import Channel, Config, Slow, Timeout
from pygroups.testing import Group, run

SMALL = Config(window=256 << 10, run_bytes=16 << 10)
PART = bytes(8 << 10)
PARTS = SMALL.window // len(PART)
PASSES = 1_000  # bytes of a frame


def drops_large_frames(group: Group, sender: str) -> None:
    """From now on no frame of `sender` with more than PASSES bytes arrives."""
    arrivals = group._platform.weather.arrivals

    def small_ones(src: str, dest: str, frame: bytes) -> Sequence[tuple[int, bytes, bool]]:
        return () if src == sender and len(frame) > PASSES else arrivals(src, dest, frame)

    group._platform.weather.arrivals = small_ones  # type: ignore[method-assign]


@pytest.mark.parametrize("sender", ["A", "B"])
@pytest.mark.parametrize("profile", ["total", "fifo", "uniform"])
def test_the_log_names_the_member_that_receives_nothing(
    profile: str, sender: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The program of the sender reads, so the log must not say that it does not."""
    caplog.set_level(logging.WARNING, "pygroups.channel")

    async def story(group: Group) -> None:
        events: list[Any] = []

        async def read(channel: Channel) -> None:
            async for event in channel:
                events.append(event)

        async def idle(channel: Channel) -> None:
            async for _ in channel:
                pass

        options = {"config": SMALL, "profile": profile}
        async with group.channel("g", name="A", **options) as a, group.channel("g", name="B", **options) as b:
            mine, other = (a, b) if sender == "A" else (b, a)
            reading = [asyncio.create_task(read(mine)), asyncio.create_task(idle(other))]
            await group.settled()
            drops_large_frames(group, sender)
            with pytest.raises(Timeout, match=f"because messages in it wait for {other.address} to receive them"):
                await mine.send_many([PART] * (2 * PARTS), timeout=12)
            assert mine.stats()["window"]["waits_for"] == [str(other.address)]
            lines = [record.getMessage() for record in caplog.records]
            acknowledged = f"{other.address} has acknowledged none of this member's messages for 5 s"
            assert any(acknowledged in line and "may drop large packets" in line for line in lines)
            assert not [line for line in lines if "read no event" in line or "has read none" in line]
            assert {event.member for event in events if isinstance(event, Slow)} == {other.address}
            group._platform.weather.__dict__.pop("arrivals")
            await group.settled()
        await asyncio.gather(*reading)

    run(story)
