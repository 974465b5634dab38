"""Standard input and output beside an event loop, in threads, because a terminal, a pipe or a file can block.

The member therefore goes on while another process does not read its output, and while no input arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final

from pygroups.core.errors import Error, UsageError

READ_BYTES: Final = 1 << 16


async def lines_of(file: int, limit: int) -> AsyncIterator[list[bytes]]:
    """The lines of an open file, without their ends, in lists.  Raises UsageError for a line over `limit` bytes."""
    loop = asyncio.get_running_loop()
    begun: list[bytes] = []  # the parts of a line whose end has not arrived
    begun_bytes = so_far = 0
    while chunk := await _in_thread(loop, lambda: _read(file)):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        begun_bytes += len(first)
        _check_sizes([begun_bytes, *map(len, others)], so_far, limit)
        if others:
            lines = [b"".join(begun), *others[:-1]]
            so_far += len(lines)
            begun, begun_bytes = [others[-1]], len(others[-1])
            yield lines
    if begun_bytes:
        yield [b"".join(begun)]


def _read(file: int) -> bytes:
    try:
        return os.read(file, READ_BYTES)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""  # the terminal was closed


def _check_sizes(sizes: list[int], before: int, limit: int) -> None:
    for number, size in enumerate(sizes, before + 1):
        if size > limit:
            raise UsageError(
                f"line {number} of the input is over the limit of a message, {limit:,} bytes: split the line"
            )


async def write_all(file: int, data: bytes) -> None:
    """Write all of `data` without blocking the event loop.  Raises OSError if the pipe or the terminal is closed, and
    Error if the file cannot be written, for instance because the disk is full."""
    loop = asyncio.get_running_loop()

    def work() -> bytes:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        return b""

    try:
        await _in_thread(loop, work)
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.EIO):
            raise
        raise Error(f"the output cannot be written: {error.strerror or error}") from error


async def _in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], bytes]) -> bytes:
    """The result of `work`, called in a thread.  The thread may outlast the loop, because a read cannot be canceled."""
    answer: asyncio.Future[bytes] = loop.create_future()

    def tell(result: bytes, error: OSError | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)

    def thread() -> None:
        result, error = b"", None
        try:
            result = work()
        except OSError as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended, and no task waits for the result
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=thread, name="pygroups stream", daemon=True).start()
    return await answer
