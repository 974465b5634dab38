"""The log lines of a channel, in the standard library's logger `pygroups.channel`."""

from __future__ import annotations

import logging
from typing import Final

LOGGER: Final = logging.getLogger("pygroups.channel")


class Log:
    """The log of one channel.  Each line begins with the member and its group."""

    def __init__(self, member: str, group: str) -> None:
        self._who = f"{member} in group {group!r}: "

    def info(self, text: str, *values: object) -> None:
        """Log a normal event."""
        LOGGER.info("%s" + text, self._who, *values)

    def warning(self, text: str, *values: object) -> None:
        """Log an event that may need attention."""
        LOGGER.warning("%s" + text, self._who, *values)
