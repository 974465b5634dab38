"""RATE: a member sends multicasts at a limited rate, and waits for no other member.

The window of a member has the messages that wait for their turn.  Needs nothing; FLOW_CONTROL above counts the bytes of
the window.  Note: docs/layers/rate.md.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from pygroups.core.events import Event, Excluded, Stability
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import SECOND
from pygroups.core.run import Run
from pygroups.core.tables import Tables


def earned(tokens: int, passed: int, rate: int, burst: int) -> int:
    """The bytes that may be sent after `passed` microseconds at `rate` bytes a second; at most `burst` of them."""
    return min(burst, tokens + rate * passed // SECOND)


class Rate(Layer):
    """Holds own multicasts back until their turn."""

    __slots__ = ("burst", "counted_at", "queue", "rate", "tokens")

    needs: ClassVar[frozenset[str]] = frozenset({"GOSSIP"})
    gives: ClassVar[frozenset[str]] = frozenset({"WINDOW"})

    tables: ClassVar[Tables] = {
        "queue": "window_runs",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rate = env.config.gossip_rate
        self.burst = min(env.config.gossip_burst, env.config.window)
        self.tokens = self.burst  # bytes that may be sent now; below 0 after a run that was larger
        self.counted_at = env.now
        self.queue: deque[Run] = deque()  # within the window of the top

    def down(self, run: Run) -> None:
        if run.dest is not None or run.origin is None:
            self.below.append(run)
            return
        self.queue.append(run)
        self._send()

    def _send(self) -> None:
        """Send the runs whose turn it is.  A run that was sent has left the window."""
        now = self.env.now
        self.tokens = earned(self.tokens, now - self.counted_at, self.rate, self.burst)
        self.counted_at = now
        sent = 0
        while self.queue and self.tokens > 0:
            run = self.queue.popleft()
            self.tokens -= max(len(run.body), self.env.config.run_bytes_min)
            self.below.append(run)
            sent = run.next
        if sent:
            self.above.append(Stability({}, {}, 0, sent))
        self.wake = NEVER
        if self.queue:
            self.env.count("runs held back for the rate")
            self.wake = now + 1 + (1 - self.tokens) * SECOND // self.rate

    def timer(self) -> None:
        self._send()

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Excluded):
            self.queue.clear()
            self.wake = NEVER

    def gauges(self) -> dict[str, int]:
        return {"waiting": len(self.queue)}
