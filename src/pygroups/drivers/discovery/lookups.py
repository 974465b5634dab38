"""DNS names of discovery: all addresses of a name, looked up in a thread, again and again.

For instance, the name of a headless service of Kubernetes has one address for each process.  While a lookup fails, the
addresses of the last one stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ..contacts import Contact
from ..rate_limited import RateLimitedLog
from ..resolver import RESOLVER
from ..tcp.questions import NO_SUCH_NAME
from .options import LISTED_MAX

PAUSE: Final = 1.0  # seconds between two lookups of a name


class Lookup:
    """The addresses of one DNS name.  `found` is called when a lookup has ended."""

    def __init__(
        self,
        name: Contact,
        loop: asyncio.AbstractEventLoop,
        found: Callable[[], None],
        count: Callable[[str], None],
        warn: RateLimitedLog,
    ) -> None:
        self.name = name
        self.loop = loop
        self.found = found
        self.count = count
        self.warn = warn
        self.contacts: tuple[Contact, ...] = ()
        self.sure = False  # the last lookup was answered, and did not just fail for now
        self.task: asyncio.Task[None] | None = None
        self.not_before = 0.0  # the loop's time

    def look(self) -> None:
        """Look the name up, if no lookup is under way or just ended."""
        if self.task is None and self.loop.time() >= self.not_before:
            self.task = self.loop.create_task(self._look(), name=f"pygroups looks up {self.name.host}")

    async def _look(self) -> None:
        try:
            found = await RESOLVER.look_up(self.name.host, self.loop)
        except (OSError, UnicodeError) as error:  # UnicodeError: the name is invalid
            self.sure = isinstance(error, UnicodeError) or error.errno in NO_SUCH_NAME
            if self.sure:
                self.contacts = ()  # the name has no address: no process is ready, or the name is misspelled
                self.warn.warning("name", "the name %s has no address, and is looked up again", self.name.host)
            else:
                self.count("names of discovery that could not be looked up")
                self.warn.warning("lookup", "the lookup of %s failed, and is repeated: %s", self.name.host, error)
        else:
            places = dict.fromkeys([Contact(host, self.name.port) for _, host in found])
            self.contacts, self.sure = tuple(places)[:LISTED_MAX], True
        self.task = None
        self.not_before = self.loop.time() + PAUSE
        self.found()

    def close(self) -> None:
        """Forget a lookup that is under way."""
        if self.task is not None:
            self.task.cancel()
            self.task = None
