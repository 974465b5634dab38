"""The progress of a batch of simulated schedules: one line on a terminal, which is overwritten; nothing in a pipe."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Final

EVERY_S: Final = 0.2


def say(text: str) -> None:
    """Overwrite the progress line with `text`, on a terminal only.  An empty text removes the line."""
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
        sys.stderr.flush()


class ProgressLine:
    """Shows the number of finished schedules out of `of`, the speed, the remaining time, and the faults so far."""

    def __init__(self, of: int) -> None:
        self.of = of
        self.began = time.monotonic()
        self._said = -EVERY_S

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.began

    def tell(self, done: int, faults: Mapping[str, int]) -> None:
        """Show that `done` schedules are finished, with these faults so far."""
        seconds = self.seconds
        if seconds - self._said >= EVERY_S:
            self._said = seconds
            say(progress_text(done, self.of, seconds, faults))

    def end(self) -> None:
        """Remove the line."""
        say("")


def progress_text(done: int, of: int, seconds: float, faults: Mapping[str, int]) -> str:
    """The text of the line after `seconds`."""
    rate = done / max(seconds, 0.001)
    left = _duration((of - done) / rate) if done else "?"
    happened = ", ".join(f"{name} {number:,}" for name, number in sorted(faults.items(), key=lambda item: -item[1]))
    return f"{done:,} of {of:,} schedules, {rate:,.1f} a second, {left} left" + (f"; {happened}" if happened else "")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
