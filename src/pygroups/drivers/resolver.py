"""The lookup of host names, in threads of its own.

A lookup can take as long as a name server is silent, and cannot be cancelled.  So it stops no event loop, the end
of the program does not wait for it (the threads are daemons), and it takes no place in the program's own thread pool.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Final

from .forks import watched

THREADS_MAX: Final = 32  # lookups of different names at one time; the others wait

Found = list[tuple[int, str]]  # address families and numeric addresses
Name = tuple[str, int]  # a host, and the address family to look for


class Resolver:
    """Lookups of all event loops of the process.  Those of one name at one time share one thread."""

    lock: threading.Lock
    waiting: dict[Name, list[asyncio.Future[Found]]]  # until the lookup of the name has ended
    queue: deque[Name]  # names that no thread has taken yet
    threads: int

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.lock, self.waiting, self.queue, self.threads = threading.Lock(), {}, deque(), 0

    async def look_up(
        self, host: str, loop: asyncio.AbstractEventLoop, family: int = socket.AddressFamily.AF_UNSPEC
    ) -> Found:
        """The addresses of `host`, at least one.  Raises OSError or UnicodeError, as `socket.getaddrinfo` does."""
        future: asyncio.Future[Found] = loop.create_future()
        name = (host, int(family))
        with self.lock:
            if name in self.waiting:
                self.waiting[name].append(future)
            else:
                self._add(name)
                self.waiting[name] = [future]
        return await future

    def _add(self, name: Name) -> None:
        self.queue.append(name)
        if self.threads >= THREADS_MAX:
            return
        thread = threading.Thread(target=self._work, name=f"pygroups looks up {name[0]}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left; others may take the name
            if not self.threads:
                self.queue.pop()
                raise OSError(f"the name {name[0]} cannot be looked up: {error}") from error
        else:
            self.threads += 1

    def _work(self) -> None:
        """Look names up until none is left, in a thread."""
        while True:
            with self.lock:
                if not self.queue:
                    self.threads -= 1
                    return
                name = self.queue.popleft()
            found, error = _looked_up(*name)
            with self.lock:
                futures = self.waiting.pop(name)
            for future in futures:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    future.get_loop().call_soon_threadsafe(_tell, future, found, error)

    def forked(self) -> None:
        """The threads, and all that waits for them, stay in the parent."""
        self._begin_anew()


def _looked_up(host: str, family: int) -> tuple[Found, Exception | None]:
    try:
        answers = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    except Exception as error:  # noqa: BLE001 (it belongs to those who asked)
        return [], error
    return list(dict.fromkeys([(int(family), str(place[0])) for family, *_, place in answers])), None


def _tell(future: asyncio.Future[Found], found: Found, error: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(found)
    else:
        future.set_exception(error)


RESOLVER: Final = Resolver()
watched(RESOLVER)
