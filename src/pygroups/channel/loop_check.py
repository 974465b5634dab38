"""The check that a call comes from the event loop that opened the channel, and the remedy for each call."""

from __future__ import annotations

import asyncio
from typing import Final

from pygroups.core.errors import UsageError

SEND: Final = "use asyncio.run_coroutine_threadsafe(channel.send(payload), loop)"
SEND_NOWAIT: Final = "use loop.call_soon_threadsafe(channel.send_nowait, payload)"
SEND_MANY: Final = "use asyncio.run_coroutine_threadsafe(channel.send_many(payloads), loop)"
WAIT: Final = "use asyncio.run_coroutine_threadsafe(channel.wait(number), loop)"
READY: Final = "use asyncio.run_coroutine_threadsafe(channel.ready(), loop)"
LEAVE: Final = "use asyncio.run_coroutine_threadsafe(channel.leave(), loop)"
READ: Final = "get the events through a queue.Queue, which a task in that event loop fills"
EXIT: Final = "call channel.leave() with asyncio.run_coroutine_threadsafe, and end `async with` in that event loop"


def check_loop(loop: asyncio.AbstractEventLoop, remedy: str) -> None:
    """Raise UsageError, with the remedy, in another event loop than `loop`, or in a thread without one."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # a thread without an event loop
        here = None
    if here is not loop:
        raise UsageError(f"the channel belongs to the event loop that opened it: in another thread or loop, {remedy}")
