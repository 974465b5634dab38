"""What a channel tells the people who run its program: the logger `pygroups.channel` of the standard library."""

from __future__ import annotations

import logging
from typing import Final

LOGGER: Final = logging.getLogger("pygroups.channel")


class Log:
    """Log lines of one channel; each begins with the member and its group."""

    def __init__(self, member: str, group: str) -> None:
        self._who = f"{member} in group {group!r}: "

    def info(self, text: str, *values: object) -> None:
        """What happened as it should."""
        LOGGER.info("%s" + text, self._who, *values)

    def warning(self, text: str, *values: object) -> None:
        """What somebody may have to look at."""
        LOGGER.warning("%s" + text, self._who, *values)
