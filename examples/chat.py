"""A chat in the terminal, without a server.  Whoever comes later gets the last lines.

Start it in two shells or more, and type; Ctrl-D leaves:

    python examples/chat.py ann
    python examples/chat.py bob

On several machines each process is told where the others are, and needs a secret (`pygroups secret new chat.secret`):

    python examples/chat.py ann --bind 0.0.0.0:7000 --discovery 10.0.0.1:7000,10.0.0.2:7000 --secret chat.secret
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import pygroups

KEPT = 20  # lines for those who come later


class Room:
    """The last lines, in the order of the group: at all processes the same."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.members: set[str] = set()
        self.say = say

    def handle(self, event: pygroups.Event) -> None:
        match event:
            case pygroups.Message(sender=sender, payload=payload):
                self.lines.append(f"{sender.name}: {payload.decode()}")
                self.say(self.lines[-1])
            case pygroups.View(members=members):
                names = {member.name for member in members}
                for name in sorted(names - self.members):
                    self.say(f"* {name} is here")
                for name in sorted(self.members - names):
                    self.say(f"* {name} has left")
                self.members = names
            case pygroups.Gap(sender=sender, count=count):
                self.say(f"* {count} lines of {sender.name} are lost: the network was cut")

    # -- the state of a process that joins

    async def get_state(self) -> bytes:
        return json.dumps([*self.lines]).encode()

    async def set_state(self, data: bytes) -> None:
        for line in json.loads(data):
            self.lines.append(line)
            self.say(line)


async def chat(name: str, lines: AsyncIterator[str], say: Callable[[str], None], **options: Any) -> None:
    """Be in the room until `lines` ends."""
    room = Room(say)
    async with pygroups.Channel("chat", name=name, state=room, rejoin=True, **options) as channel:

        async def read() -> None:
            async for event in channel:
                room.handle(event)

        reading = asyncio.create_task(read())
        await channel.ready()  # the last lines are here
        async for line in lines:
            await channel.send(line.encode(), until="read")
        reading.cancel()


async def typed() -> AsyncIterator[str]:
    """The lines of the terminal, to Ctrl-D."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        if text := line.strip():
            yield text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="the name of this member, which no other one has")
    parser.add_argument("--bind", default="127.0.0.1:0", help="the address to listen on")
    parser.add_argument("--discovery", help="the addresses of the others, with commas")
    parser.add_argument("--secret", help="the file with the secret of the group")
    given = vars(parser.parse_args())
    asyncio.run(chat(given.pop("name"), typed(), print, **{key: value for key, value in given.items() if value}))
