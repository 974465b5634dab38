"""Rate-limited warnings: the first warning of each kind is logged, and then at most one in ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

from pygroups.core.tables import Tables

SECONDS: Final = 10.0
KINDS_MAX: Final = 256


class Warns(Protocol):
    """A logger, or the log of a channel."""

    def warning(self, text: str, /, *values: object) -> None:
        """Log `text` with its `values`."""


class RateLimitedLog:
    """Logs rate-limited warnings.  A warning gives the number of warnings of its kind that were left out before it.
    `now`: the time in seconds."""

    tables: ClassVar[Tables] = {
        "kinds": KINDS_MAX,
    }

    def __init__(self, logger: Warns, now: Callable[[], float] = time.monotonic) -> None:
        self.logger = logger
        self.now = now
        self.kinds: dict[str, tuple[float, int]] = {}  # the time of the last warning, and the number left out since

    def warning(self, kind: str, text: str, *values: object) -> None:
        """Log `text` with its `values`, unless a warning of the same `kind` was logged in the last ten seconds."""
        now = self.now()
        logged_at, left_out = self.kinds.get(kind, (now - SECONDS, 0))
        if now - logged_at < SECONDS:
            self.kinds[kind] = (logged_at, left_out + 1)
            return
        if len(self.kinds) >= KINDS_MAX:
            self.kinds.clear()
        self.kinds[kind] = (now, 0)
        if left_out:
            text, values = text + " (and %d more of this kind since the last such line)", (*values, left_out)
        self.logger.warning(text, *values)
