"""A program whose member was removed from its group, or was away from it, cannot overlook it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pygroups import Excluded, Left
from pygroups.core import events as core
from tests.channel.socket_group import Group, in_a_group
from tests.patience import patience


def test_iteration_raises_after_an_exclusion_and_again_whenever_it_is_tried(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        channel = reader.channel
        channel._member._pass(lambda event, now: channel._top.up_event(event), core.Excluded("excluded", ""))  # type: ignore[attr-defined]
        with pytest.raises(Excluded, match="open a new channel"):
            await reader.task
        assert reader.events[-1] == Left("excluded", [])
        with pytest.raises(Excluded):
            await anext(channel)
        with pytest.raises(Excluded):
            await anext(channel.batches())

    in_a_group(tmp_path, story)


def test_after_a_leave_of_the_programs_own_iteration_just_ends(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        await asyncio.sleep(0)
        await reader.channel.leave()
        await reader.task
        assert reader.events[-1] == Left("left", [])
        with pytest.raises(StopAsyncIteration):
            await anext(reader.channel)

    in_a_group(tmp_path, story)


PROGRAM = """
import asyncio, sys
import pygroups


async def main() -> None:
    limits = pygroups.Config(heartbeat=0.1, heartbeat_timeout=0.6, verify_timeout=0.2)
    async with pygroups.Channel("orders", name=sys.argv[1], discovery=sys.argv[2], config=limits) as channel:
        await channel.send(b"to everyone")
        async for event in channel:
            match event:
                case pygroups.Message(sender=sender, payload=payload):
                    print(sender.name, payload)
                case pygroups.View(members=members):
                    again = "merged:" if isinstance(event, pygroups.MergeView) else "members:"
                    print(again, [member.name for member in members], flush=True)
                case pygroups.Gap(sender=sender, count=count):
                    print("missing:", count, "of", sender.name, flush=True)


asyncio.run(main())
"""


@pytest.mark.slow
def test_a_program_that_was_stopped_comes_back_and_hears_that_it_was_away(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    processes: list[subprocess.Popen[str]] = []
    try:
        for name in "AB":
            call = [*command, name, f"dir:{tmp_path}"]
            processes.append(subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            wait_for_line(processes[0], "members: ['A', 'B']" if name == "B" else "members: ['A']")
        wait_for_line(processes[1], "members: ['A', 'B']")
        processes[1].send_signal(signal.SIGSTOP)
        wait_for_line(processes[0], "members: ['A']")
        time.sleep(1)  # so that it is late by more than the warning needs
        processes[1].send_signal(signal.SIGCONT)
        for process in processes:
            wait_for_line(process, "merged: ['A', 'B']")
        processes[1].send_signal(signal.SIGINT)
        _, errors = processes[1].communicate(timeout=patience(120))
        assert "the event loop was blocked for" in errors, "logged"
        assert "Excluded" not in errors
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def wait_for_line(process: subprocess.Popen[str], wanted: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == wanted:
            return
    raise AssertionError(f"it ended without {wanted!r}")
