"""What a member holds for a while: a lock, a permit or a task."""

from __future__ import annotations

import asyncio


class Holding:
    """The part of a grant that hears of its end.  `call` is the call that got it."""

    ends_when_blocked = True

    def __init__(self) -> None:
        self.call = 0
        self.why_ended: str | None = None  # None: it goes on
        self._ended = asyncio.Event()

    def end(self, reason: str) -> None:
        """This process does not hold it any more, or cannot know that it does."""
        if self.why_ended is None:
            self.why_ended = reason
            self._ended.set()

    async def wait_ended(self) -> str:
        """Wait until it is over, and return the reason."""
        await self._ended.wait()
        assert self.why_ended is not None
        return self.why_ended
