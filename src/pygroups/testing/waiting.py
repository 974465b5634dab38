"""Sentences about waiting tasks, for the error message of a test that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

from pygroups.channel import Channel

WAITS: Final = {
    "Inbox._wait": "an event",
    "Outbox._room": "room in the window",
    "Outbox._arrival": "its message to arrive",
    "Session.join": "its join to finish",
    "Session.leave": "its leave to finish",
    "States.load": "the state",
}
ASYNCIO_WAITS: Final = {
    "sleep": "time to pass",
    "Event.wait": "an asyncio.Event",
    "Lock.acquire": "an asyncio.Lock",
    "Condition.wait": "an asyncio.Condition",
    "Queue.get": "an item of an asyncio.Queue",
    "Queue.put": "room in an asyncio.Queue",
}
_OURS: Final = str(Path(__file__).parents[1])
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)


def sentence(task: asyncio.Task[Any]) -> str:
    """A sentence with the event that `task` waits for, and the line in its program."""
    frames = list(_frames(task))
    names = [frame.f_code.co_qualname for frame in reversed(frames)]
    what = next((WAITS[name] for name in names if name in WAITS), None)
    channel = next((c for c in [f.f_locals.get("self") for f in frames] if isinstance(c, Channel)), None)
    if what is not None and channel is not None:
        what += f" at channel {channel.address.name}"
    elif what is None:
        what = _waits_in_asyncio(task, names)
    return f"task {task.get_name()!r} waits for {what}{_place(frames)}"


def canceled_at(task: asyncio.Task[Any]) -> TracebackType | None:
    """The traceback of the line at which `task` was canceled, if it was."""
    if not task.cancelled():
        return None
    try:
        task.result()
    except asyncio.CancelledError as canceled:
        theirs = [entry for entry in _entries(canceled.__traceback__) if _is_theirs(entry.tb_frame)]
        for entry, following in zip(theirs, [*theirs[1:], None], strict=True):
            entry.tb_next = following
        return theirs[0] if theirs else None
    return None


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_theirs(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith((_OURS, _ASYNCIO))


def _waits_in_asyncio(task: asyncio.Task[Any], names: list[str]) -> str:
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        return f"task {waiter.get_name()!r}"
    return next((ASYNCIO_WAITS[name] for name in names if name in ASYNCIO_WAITS), "something")


def _place(frames: list[FrameType]) -> str:
    """The innermost line of the test, outside pygroups and asyncio."""
    theirs = [frame for frame in frames if _is_theirs(frame)]
    if not theirs:
        return ""
    code = theirs[-1].f_code
    return f" ({Path(code.co_filename).name}:{theirs[-1].f_lineno} in {code.co_name})"


def _frames(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """The frames of the task, from its own coroutine inward."""
    awaited: Any = task.get_coro()
    while awaited is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaited, f"{kind}_frame")), None)
        if kind is None or getattr(awaited, f"{kind}_frame") is None:
            return
        yield getattr(awaited, f"{kind}_frame")
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
