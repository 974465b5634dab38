"""How far a batch of simulated schedules is: one line on a terminal that is written over; nothing in a pipe."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Final

EVERY_S: Final = 0.2


def say(text: str) -> None:
    """Write `text` over the line, on a terminal only; no text takes the line away."""
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
        sys.stderr.flush()


class Progress:
    """Says how many of `of` schedules are done, how fast it goes, how long it takes yet and what happened in them."""

    def __init__(self, of: int) -> None:
        self.of = of
        self.began = time.monotonic()
        self._said = -EVERY_S

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.began

    def tell(self, done: int, faults: Mapping[str, int]) -> None:
        """`done` of them are done, and these faults happened."""
        seconds = self.seconds
        if seconds - self._said >= EVERY_S:
            self._said = seconds
            say(progress_text(done, self.of, seconds, faults))

    def end(self) -> None:
        """Take the line away."""
        say("")


def progress_text(done: int, of: int, seconds: float, faults: Mapping[str, int]) -> str:
    """What stands in the line after so many seconds."""
    rate = done / max(seconds, 0.001)
    left = _duration((of - done) / rate) if done else "?"
    happened = ", ".join(f"{name} {number:,}" for name, number in sorted(faults.items(), key=lambda item: -item[1]))
    return f"{done:,} of {of:,} schedules, {rate:,.1f} a second, {left} left" + (f"; {happened}" if happened else "")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
