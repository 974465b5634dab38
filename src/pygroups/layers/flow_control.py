"""FLOW_CONTROL: of the bytes that a member multicasts, no more than a window are anywhere that not all others have
consumed; so every queue of every member is bounded by members x window.

The window stands at the origin.  The top asks for room before it cuts a run; this layer says what has left the window.
It outlives views: who left no longer counts, because nobody waits for its votes.  Note: docs/layers/flow_control.md.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from pygroups.core.events import Event, Excluded, Freed, Stability
from pygroups.core.layer import Env, Layer
from pygroups.core.run import Run


class FlowControl(Layer):
    """See the module."""

    __slots__ = ("freed_bytes", "window", "window_bytes")

    needs: ClassVar[frozenset[str]] = frozenset({"MARKS"})
    gives: ClassVar[frozenset[str]] = frozenset({"BOUNDED"})

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.window: deque[tuple[int, int]] = deque()  # own multicasts: the number after the run's last, and its bytes
        self.window_bytes = 0
        self.freed_bytes = 0  # of all own multicasts so far, those out of the window

    def down(self, run: Run) -> None:
        if run.dest is None and run.count:
            size = len(run.body)
            self.window.append((run.first + run.count, size))
            self.window_bytes += size
        self.below.append(run)

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Stability):
            self._free(event.consumed)
        elif isinstance(event, Excluded):
            self.window.clear()
            self.window_bytes = 0

    def _free(self, consumed: int) -> None:
        """Everybody else has consumed all below number `consumed`."""
        freed = 0
        while self.window and self.window[0][0] <= consumed:
            freed += self.window.popleft()[1]
        if freed:
            self.window_bytes -= freed
            self.freed_bytes += freed
            self.above.append(Freed(self.freed_bytes))

    def gauges(self) -> dict[str, int]:
        return {"window_bytes": self.window_bytes}
