"""The channel on uvloop: what the other tests of the channel say of the standard library's loop holds there too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from tests.channel.socket_group import Group, in_a_group, until
from tests.channel.test_channel import (
    test_a_group_of_one_hears_itself_and_ends,
    test_all_members_see_the_same_in_the_same_order,
    test_whoever_waits_for_stable_knows_that_all_have_it,
)
from tests.event_loops import on_uvloop

__all__ = [
    "on_uvloop",
    "test_a_group_of_one_hears_itself_and_ends",
    "test_all_members_see_the_same_in_the_same_order",
    "test_whoever_waits_for_stable_knows_that_all_have_it",
]

ANOTHER_MEMBER = """
import asyncio, sys
import uvloop
from pygroups import Channel, Message

async def main():
    async with Channel("g", name="B", discovery=f"dir:{sys.argv[1]}") as channel:
        async for event in channel:
            if isinstance(event, Message) and event.sender != channel.address:
                await channel.send(b"you said " + event.payload)

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


def test_the_loop_of_these_tests_is_uvloop(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)

    in_a_group(tmp_path, story)


@pytest.mark.slow
def test_two_processes_form_a_group_talk_and_one_survives_the_others_death(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        loop = asyncio.get_running_loop()
        faults: list[object] = []
        loop.set_exception_handler(lambda loop, context: faults.append(context))
        here = await group.read("A")
        child = subprocess.Popen([sys.executable, "-c", ANOTHER_MEMBER, str(group.folder)])
        try:
            await until(lambda: len(here.channel.view.members) == 2)
            await here.channel.send(b"hello")
            await until(lambda: here.payloads == [b"hello", b"you said hello"])
            killed_at = loop.time()
            os.kill(child.pid, signal.SIGKILL)
            await until(lambda: len(here.channel.view.members) == 1)
            assert loop.time() - killed_at < 2  # it is proven: nobody waited for a time-out of 5 s
            await here.channel.send(b"alone", until="stable")
            assert faults == []
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            child.wait()

    in_a_group(tmp_path, story)
