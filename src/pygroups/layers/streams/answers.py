"""Retransmission: any member that holds a missing run answers the request and sends the run again, but not while a copy
is on its way, and not more at once than the network and the asker can take.

Note: docs/layers/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.layer import Layer
from pygroups.core.run import Run
from pygroups.core.tables import Tables

from .holes import Ranges
from .stream import Stream


class Answers:
    """Sends stored runs of one layer again to the members that ask for them."""

    __slots__ = ("layer", "period", "sent_at", "spent", "swept_at", "waiting")

    tables: ClassVar[Tables] = {
        "sent_at": "answers",
        "spent": "members",
        "spent[]": "fixed",
        "waiting": "lane_runs_of_all",
    }

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.period = layer.env.config.nakack_period
        self.sent_at: dict[tuple[Address, Address, int], int] = {}  # by asker, stream and number, within a period
        self.spent: dict[Address, tuple[int, int]] = {}  # by asker, the runs and bytes sent since the last sweep
        self.swept_at = 0
        self.waiting: dict[tuple[Address, object], None] = {}  # asker and head of each answer in UNICAST2's lane

    def begin(self) -> None:
        """Forget the answers of the view before."""
        self.sent_at, self.spent, self.swept_at, self.waiting = {}, {}, 0, {}

    def waits(self, asker: Address, head: object) -> None:
        """An answer waits in the reliable lane to `asker`: a copy of this answer would only wait behind the answer."""
        self.waiting[asker, head] = None

    def arrived(self, asker: Address, heads: Iterable[object]) -> None:
        """`asker` has these answers.  `asker` lacks a run again if it requests the run again."""
        for head in heads:
            self.waiting.pop((asker, head), None)

    def acknowledge(self, asker: Address, name: Address, stream: Stream, seq: int) -> None:
        """`asker` has this run: its requests for the run that arrive within a period are older than that."""
        self._forget_old()
        stored = stream.runs.get(seq)
        if stored is not None and self._has_room(asker, stored):
            self.sent_at[asker, name, seq] = self.layer.env.now
            runs, size = self.spent.get(asker, (0, 0))
            self.spent[asker] = (runs + 1, size)

    def answer(self, name: Address, stream: Stream, ranges: Ranges, asker: Address) -> None:
        """Send `asker` the runs of these ranges of the stream `name` that are held here, early runs included."""
        env = self.layer.env
        floor, end = stream.low, stream.next + env.config.nakack_early_max
        for low, high in ranges:
            for seq in range(max(low, floor), min(high, end)):
                stored = stream.runs.get(seq)
                if stored is None:
                    continue
                if (asker, stored.head) in self.waiting:
                    env.count("answers that wait already")
                    continue
                self._forget_old()
                if not self._has_room(asker, stored):
                    env.drop("requests for more runs than are sent at once")
                    return
                if not self._is_on_its_way(asker, name, seq):
                    self._send_again(name, seq, stored, asker)
            floor = max(floor, high)  # ranges ascend: a request that repeats one is answered once

    def _forget_old(self) -> None:
        """Once in a period forget the answers that were sent longer ago than a period."""
        now = self.layer.env.now
        if now >= self.swept_at + self.period:
            self.sent_at = {key: at for key, at in self.sent_at.items() if now < at + self.period}
            self.swept_at, self.spent = now, {}

    def _has_room(self, asker: Address, stored: Run) -> bool:
        """Whether one more run may be sent to `asker` in this period.  The asker requests the rest again."""
        config = self.layer.env.config
        runs, size = self.spent.get(asker, (0, 0))
        fits = size + len(stored.body) <= config.nakack_answer_bytes
        return runs < config.nakack_answer_runs and (fits or not runs)

    def _is_on_its_way(self, asker: Address, name: Address, seq: int) -> bool:
        """Whether the run was sent within a period: then the request is older."""
        return self.layer.env.now < self.sent_at.get((asker, name, seq), -self.period) + self.period

    def _send_again(self, name: Address, seq: int, stored: Run, asker: Address) -> None:
        env = self.layer.env
        self.sent_at[asker, name, seq] = env.now
        self.layer.below.append(stored.readdressed(env.me, asker))
        env.requested += 1
        env.count("runs sent again")
        env.count("bytes sent again", len(stored.body))
        runs, size = self.spent.get(asker, (0, 0))
        self.spent[asker] = (runs + 1, size + len(stored.body))
        if env.journaling and stored.origin is not None:
            env.record(
                "retransmit",
                **stored.columns(),
                peer=asker,
                stream=name,
                seq=seq,
            )
