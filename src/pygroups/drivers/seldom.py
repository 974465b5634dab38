"""Warnings that may come in masses: of each kind the first is logged, and then at most one in ten seconds."""

from __future__ import annotations

import logging
import time
from typing import Final

SECONDS: Final = 10.0
KINDS_MAX: Final = 256


class Seldom:
    """Logs warnings of one logger.  A warning says how many of its kind were left out before it."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger
        self.kinds: dict[str, tuple[float, int]] = {}  # when one was logged, and how many were left out since

    def warning(self, kind: str, text: str, *values: object) -> None:
        """Log `text` with its `values`, unless one of the same `kind` was logged a moment ago."""
        now = time.monotonic()
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
