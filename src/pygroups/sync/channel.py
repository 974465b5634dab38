"""A channel for programs without an event loop: the calls block."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from pygroups import channel
from pygroups.channel import Event, Left, Payload, Until, View
from pygroups.channel.options import Options, with_parameters_of
from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, UsageError

from .background import Background, background


class Channel:
    """As pygroups.Channel, with the same options, errors and events; each call blocks its thread until it is done.

        with pygroups.sync.Channel("orders") as channel:
            channel.send(b"to everyone")
            for event in channel:
                ...

    Any number of threads may send.  One thread reads at a time.  The member itself runs in a background thread, so
    it answers the group also while the program computes, as long as the program releases the GIL now and then.
    """

    @with_parameters_of(Options)
    def __init__(self, options: Options) -> None:
        self._options = options
        self._inner: channel.Channel | None = None
        self._loop: Background = background()

    def _opened(self) -> channel.Channel:
        self._loop.check()
        if self._inner is None:
            raise ChannelClosed("the channel has not joined its group: use it inside `with`")
        return self._inner

    def __enter__(self) -> Self:
        if self._inner is not None:
            raise UsageError("this channel was opened before: create a new Channel")
        self._loop = background()  # that of this process, also if it was forked since
        self._loop.run(self._open())
        return self

    async def _open(self) -> None:
        options = {name: getattr(self._options, name) for name in Options.__dataclass_fields__ if name != "_"}
        inner = channel.Channel(**options)
        await inner.__aenter__()
        self._inner = inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run(self._opened().__aexit__(kind, error, traceback))

    # -- the member and its group

    @property
    def address(self) -> Address:
        """As Channel.address."""
        return self._opened().address

    @property
    def view(self) -> View:
        """As Channel.view."""
        return self._opened().view

    @property
    def is_coordinator(self) -> bool:
        """As Channel.is_coordinator."""
        return self._opened().is_coordinator

    def ready(self) -> None:
        """As Channel.ready."""
        self._loop.run(self._opened().ready())

    def leave(self) -> Left:
        """As Channel.leave."""
        return self._loop.run(self._opened().leave())

    def stats(self) -> dict[str, Any]:
        """As Channel.stats."""
        return self._loop.ask(self._opened().stats)

    def rotate(self) -> None:
        """As Channel.rotate."""
        self._loop.ask(self._opened().rotate)

    # -- messages

    def send(
        self,
        payload: Payload,
        *,
        to: Address | str | None = None,
        until: Until | None = None,
        timeout: float | None = None,
    ) -> int:
        """As Channel.send."""
        return self._loop.run(self._opened().send(payload, to=to, until=until, timeout=timeout))

    def send_many(
        self, payloads: Iterable[Payload], *, until: Until | None = None, timeout: float | None = None
    ) -> list[int]:
        """As Channel.send_many."""
        return self._loop.run(self._opened().send_many(payloads, until=until, timeout=timeout))

    def wait(self, number: int, *, until: Until | None = None, timeout: float | None = None) -> None:
        """As Channel.wait."""
        self._loop.run(self._opened().wait(number, until=until, timeout=timeout))

    def receive(self, timeout: float | None = None) -> Event:
        """The next event.  Raises TimeoutError if none comes within `timeout` seconds, and ChannelClosed behind the
        last event, Left; Excluded if the others removed this member."""
        event = self._loop.run(self._next(self._opened(), timeout))
        if event is None:
            raise ChannelClosed("the channel has left its group")
        return event

    def __iter__(self) -> Iterator[Event]:
        """The events to the last one, Left.  Raises Excluded behind it if the others removed this member."""
        while (event := self._loop.run(self._next(self._opened(), None))) is not None:
            yield event

    async def _next(self, inner: channel.Channel, timeout: float | None) -> Event | None:
        """The next event; None: there was the last one."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(inner)
        except StopAsyncIteration:
            return None
