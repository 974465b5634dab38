"""Bytes on disk: a state that a member receives, and the messages that follow this state until it is set.

Both are in temporary files without a name, in the folder of `tempfile.gettempdir()`.  The system frees such a file when
the process ends, however the process ends.
"""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import weakref
from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from xxhash import xxh3_64

from pygroups.core.limits import SPILL_MAX, Config
from pygroups.core.run import Run
from pygroups.core.top import Delivered

SEGMENT: Final = 32 << 20  # bytes of one file of spilled messages
PIECE: Final = 1 << 20  # bytes of one piece of a state for set_state_chunks()


class Spill:
    """The bodies of runs, in mapped files of SEGMENT bytes.  The files take at most `most` bytes together.

    A file is freed with the last body in it.  So the process holds a few pages of the bodies that the program reads,
    and the disk holds the others.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0  # of all files that are in use
        self.full = False  # no room was left for a file: no further body is spilled
        self.mapping = memoryview(b"")  # the file that is written now
        self.fd = -1
        self.end = 0

    def spilled(self, run: Run) -> Run:
        """The same run, with its body on disk.  Without room for the body, this is the run itself."""
        if self.full:
            return run
        try:
            if self.end + len(run.body) > len(self.mapping):
                self._begin(max(SEGMENT, len(run.body)))
            return msgspec.structs.replace(run, body=self._write(run.body))
        except OSError:  # the message stays in memory, which has a limit of its own
            self.full = True
            self.close()
            return run

    def close(self) -> None:
        """Write no more.  Each file is freed with the last body in the file."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.end, self.mapping = -1, 0, memoryview(b"")

    def _begin(self, size: int) -> None:
        self.close()
        if self.size + size > self.most:
            raise OSError(errno.ENOSPC, f"spilled messages take {self.size:,} bytes")
        self.fd = temporary()
        os.posix_fallocate(self.fd, 0, size)  # a full disk shows here, and not when a page is read
        mapping = mmap.mmap(self.fd, size, access=mmap.ACCESS_READ)
        self.size += size
        weakref.finalize(mapping, self._freed, size).atexit = False
        self.mapping = memoryview(mapping)

    def _freed(self, size: int) -> None:
        self.size -= size

    def _write(self, body: bytes) -> memoryview:
        begin, left = self.end, memoryview(body)
        while left:
            written = os.pwrite(self.fd, left, self.end)
            self.end += written
            left = left[written:]
        return self.mapping[begin : self.end]


class Overflow:
    """Keeps the messages behind a state: in memory up to `spill_after` bytes, and on disk beyond."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.spill: Spill | None = None

    def kept(self, item: Delivered, in_memory: int) -> Delivered:
        """The item, with its messages on disk if the queue already has `spill_after` bytes in memory."""
        if in_memory <= self.config.spill_after:
            return item
        if self.spill is None:
            self.spill = Spill(SPILL_MAX)
        return msgspec.structs.replace(item, run=self.spill.spilled(item.run))

    def stop(self) -> None:
        """The state is set: write no more."""
        if self.spill is not None:
            self.spill.close()
            self.spill = None


def in_memory(item: Delivered) -> int:
    """The bytes of the item's messages in memory: none if they are on disk."""
    body: object = item.run.body
    return len(body) if type(body) is bytes else 0


class Received:
    """The parts of a state: in memory up to `most` bytes, and in a temporary file beyond."""

    def __init__(self, most: int) -> None:
        import tempfile

        self.file = tempfile.SpooledTemporaryFile(max_size=most)  # noqa: SIM115 (closed by close())
        self.size = 0
        self.digest = xxh3_64()

    def add(self, part: bytes) -> None:
        """Append a part.  Raises OSError if the disk is full."""
        self.file.write(part)
        self.size += len(part)
        self.digest.update(part)

    def whole(self) -> bytes:
        """All parts, joined."""
        self.file.seek(0)
        return self.file.read()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """All parts, joined, in pieces of PIECE bytes.  Yields to the loop between two pieces."""
        at = 0
        while at < self.size:
            self.file.seek(at)
            piece = self.file.read(PIECE)
            at += len(piece)
            yield piece
            await asyncio.sleep(0)

    def close(self) -> None:
        """Free memory and disk."""
        self.file.close()


def temporary() -> int:
    """The descriptor of a new file without a name."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
