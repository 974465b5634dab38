"""A process that has joined forks: the child has no part in the group, and keeps nobody from noticing the parent's
death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pygroups import Message
from tests.channel.socket_group import Group, in_a_group, until
from tests.patience import patience

MEMBER = """
import asyncio, json, multiprocessing, os, socket, sys, time
import uvloop
from pygroups import Channel, ChannelClosed

def say(**words):
    os.write(1, json.dumps(words).encode() + b"\\n")

def kept(folder):
    paths = {number: f"/proc/self/fd/{number}" for number in map(int, os.listdir("/proc/self/fd"))}
    names = {number: os.readlink(path) for number, path in paths.items() if os.path.lexists(path)}
    return [name for number, name in names.items() if name.startswith(folder) or over_tcp(number, name)]

def over_tcp(number, name):
    if not name.startswith("socket:"):
        return False
    with socket.socket(fileno=os.dup(number)) as copy:
        return copy.family == socket.AF_INET  # the event loop has sockets of another family

async def tried(channel):
    errors = []
    for attempt in (
        lambda: channel.send(b"from the child"),
        lambda: channel.send(b"x", until="stable"),
        lambda: channel.wait(1),
        lambda: anext(aiter(channel)),
        lambda: anext(batches),
        channel.leave,
    ):
        try:
            await attempt()
            errors.append("nothing was raised")
        except ChannelClosed as error:
            errors.append(str(error))
    for attempt in (lambda: channel.send_nowait(b"x"), channel.stats, lambda: channel.view):
        try:
            attempt()
            errors.append("nothing was raised")
        except ChannelClosed as error:
            errors.append(str(error))
    await channel.__aexit__(None, None, None)
    return errors

def child():
    errors, folder = asyncio.run(tried(channel)), sys.argv[1]
    say(child=os.getpid(), errors=errors, kept=kept(folder))
    time.sleep(60)

async def main():
    global channel, batches
    folder, how = sys.argv[1:3]
    async with Channel("g", name="A", discovery=f"dir:{folder}/groups", journal=f"{folder}/journal") as channel:
        batches = channel.batches()
        while len(channel.view.members) < 2:
            await asyncio.sleep(0.01)
        await channel.send(b"before")
        await asyncio.sleep(0.1)
        if how == "os.fork":
            if os.fork() == 0:
                child()
        else:
            multiprocessing.get_context("fork").Process(target=child, daemon=True).start()
        await channel.send(b"after", until="stable")
        await asyncio.sleep(60)

with asyncio.Runner(loop_factory=uvloop.new_event_loop if sys.argv[3] == "uvloop" else None) as runner:
    runner.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("how", ["os.fork", "multiprocessing"])
def test_a_child_keeps_nothing_and_its_parents_death_is_noticed(tmp_path: Path, how: str, loop: str) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("B")
        command = [sys.executable, "-c", MEMBER, str(tmp_path), how, loop]
        parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        child = 0
        try:
            assert parent.stdout is not None
            told: dict[str, Any] = json.loads(await asyncio.to_thread(parent.stdout.readline))
            child = told["child"]
            assert told["kept"] == []
            assert len(told["errors"]) == 9
            assert {error.partition(",")[0] for error in told["errors"]} == {"the channel belongs to another process"}
            await until(lambda: reader.payloads == [b"before", b"after"])  # the parent goes on
            os.kill(parent.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            await until(lambda: len(reader.channel.view.members) == 1)
            assert time.monotonic() - killed_at < patience(2)  # 6 s by time-outs
            await group.read("A")  # whose former incarnation's entry nobody holds
            assert time.monotonic() - killed_at < patience(4)
            await until(lambda: len(reader.channel.view.members) == 2)
        finally:
            for pid in filter(None, (child, parent.poll() is None and parent.pid)):
                os.kill(pid, signal.SIGKILL)
            parent.wait()
        assert all(message.payload in (b"before", b"after") for message in messages(reader.events))

    def messages(events: list[Any]) -> list[Message]:
        return [event for event in events if isinstance(event, Message)]

    (tmp_path / "groups").mkdir(mode=0o700)
    in_a_group(tmp_path, story)
