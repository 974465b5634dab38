"""The snapshot of a state, as get_state() returns it: an iterator of bytes, cut into chunks and watched for time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from pygroups.core.errors import UsageError


async def one(data: bytes) -> AsyncIterator[bytes]:
    """A snapshot of one piece."""
    yield data


@asynccontextmanager
async def closing(pieces: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Close the application's iterator, if it has aclose(), in any case, because the iterator may hold an open
    snapshot."""
    try:
        yield
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


class TooLong(Exception):
    """The application's iterator gave no bytes for `state_timeout`."""


async def timed(pieces: AsyncIterator[bytes], seconds: float) -> AsyncGenerator[bytes, None]:
    """The pieces of the snapshot.  Raises TooLong if a piece takes longer than `seconds`."""
    while True:
        try:
            async with asyncio.timeout(seconds) as limit:
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if limit.expired():
                raise TooLong from None
            raise
        yield piece


def named(error: Exception) -> str:
    """The error for a log line: its type and its text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def cut(pieces: AsyncIterator[bytes], size: Callable[[], int]) -> AsyncGenerator[bytes, None]:
    """The bytes of the snapshot in pieces of the `size` at that time; the last one may be shorter.  Other tasks run
    between pieces."""
    rest = bytearray()
    async for piece in pieces:
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise UsageError(f"the iterator of get_state() must give bytes, not {type(piece).__name__}")
        rest += piece
        while len(rest) >= (most := size()):
            yield bytes(rest[:most])
            del rest[:most]
            await asyncio.sleep(0)
    if rest:
        yield bytes(rest)
