"""The lanes of UNICAST2's connections: the state of each side, and the effect of each arrival on one lane.

Pure: this file sends nothing and knows no peer.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pygroups.core.layer import NEVER
from pygroups.core.run import Run

from .heads import Data, Resend, SendFirst

UNOPENED: Final = -1  # `next` of a receiving lane whose first number is not known yet


class OutLane:
    """The runs that this member sent on one lane: [low, next) are not acknowledged."""

    __slots__ = ("doubt", "first_at", "low", "next", "pause", "sent", "sent_at", "tracked")

    def __init__(self) -> None:
        self.low = 0
        self.next = 0
        self.sent: dict[int, Run] = {}  # exactly [low, next), without the heads of this layer
        self.doubt = 0  # runs below this may be lost; later ones are not, if the driver reports every loss
        self.tracked = 0  # runs in `sent` whose layer wants to know when the peer has them
        self.sent_at = 0  # when the last run was sent, or repeated
        self.pause = 0  # after `sent_at`, until the run is repeated
        self.first_at = -NEVER  # when SendFirst was answered last

    def acknowledge(self, below: int) -> list[Run]:
        """The peer has delivered every run below `below`.  Returns those that it had not acknowledged before."""
        assert below <= self.next, "acknowledged what was not sent"
        had = [self.sent.pop(seq) for seq in range(self.low, below)]
        self.low = max(self.low, below)
        return had

    def lose(self) -> bool:
        """The runs sent so far may be lost.  Returns whether this is news about a run that the peer has not
        acknowledged."""
        was_in_doubt, self.doubt = self.in_doubt(), self.next
        return bool(self.sent) and not was_in_doubt

    def in_doubt(self) -> bool:
        """Whether some run that the peer has not acknowledged may be lost."""
        return self.low < self.doubt

    def to_repeat(self, first_pause: int) -> tuple[int, ...]:
        """The runs to retransmit unasked: the last one, because no later run would show the receiver its loss.

        After two repetitions without an answer the lowest run follows too: the last run may lie outside the receiver's
        window.
        """
        last = self.next - 1
        return (last,) if self.pause <= 2 * first_pause or self.low == last else (self.low, last)

    def held(self, low: int, high: int, most: int) -> range:
        """The numbers of [low, high) that can be sent again at once, `most` of them."""
        low = max(low, self.low)
        return range(low, min(high, self.next, low + most))

    def may_send_first(self, now: int, pause: int) -> bool:
        """Whether SendFirst is answered now: not twice within `pause`."""
        return now >= self.first_at + pause


class OutgoingConnection:
    """A connection to one peer."""

    __slots__ = ("answered_at", "conn", "lanes")

    def __init__(self, conn: int) -> None:
        self.conn = conn
        self.lanes = (OutLane(), OutLane())
        self.answered_at = 0  # when the peer last answered for this connection, or this member began to wait

    def waits(self) -> bool:
        """Whether the peer owes an acknowledgement."""
        return any(lane.sent for lane in self.lanes)


class InLane:
    """The runs that arrived on one lane: those before `next` were handed up, those in `early` wait for missing ones."""

    __slots__ = ("ask_at", "asked_next", "beyond", "early", "fed_at", "horizon", "next", "pause", "unreported")

    def __init__(self) -> None:
        self.next = UNOPENED
        self.early: dict[int, Run] = {}
        self.beyond = 0  # runs below this exist; they came too early to be kept
        self.unreported = 0  # runs since the last acknowledgement
        self.fed_at = 0  # when `early` grew last
        self.ask_at = 0  # while there is a hole: when to ask next
        self.asked_next = 0  # `next` at the last request (NEVER: none yet): unmoved, it lengthens the pause
        self.pause = 0  # between the last request and the next one
        self.horizon = 0  # holes below this are older than a period

    def begin(self, seq: int, low: int, opens: bool) -> int | None:
        """The number at which the run `seq` lets the lane begin, or to which it lets the lane skip; None: neither."""
        if self.next == UNOPENED:
            return seq if opens else None
        return low if low > self.next else None  # a former state of this receiver had all runs before

    def refusal(self, seq: int, low: int, most: int) -> str | None:
        """The reason to refuse the early run `seq`; None to keep the run.  The sender holds every run from `low` on."""
        lowest = low if self.next == UNOPENED else self.next
        if seq - lowest >= most or len(self.early) >= most:
            return "unicast beyond the window"
        return "repeated unicast" if seq in self.early else None

    def keep(self, data: Data, run: Run, most: int, now: int) -> str | None:
        """`run` came early: it waits for the runs missing before it, or is refused.  Returns the reason of a
        refusal."""
        refusal = self.refusal(data.seq, data.low, most)
        if refusal is None:
            self.early[data.seq] = run
        else:
            self.beyond = max(self.beyond, data.seq + 1)  # requested when its turn comes
        self.fed_at = now
        return refusal

    def waits(self) -> bool:
        """Whether runs are missing on this lane."""
        return bool(self.early) or self.beyond > max(self.next, 0)

    def find_hole(self, seq: int, now: int, period: int) -> None:
        """`seq` is the first run that arrived early: request the missing runs before it in a period, because they may
        only be late."""
        self.asked_next, self.horizon = NEVER, seq + 1
        self.pause, self.ask_at = period, now + period

    def asked(self, now: int, period: int, pause_max: int) -> None:
        """The peer was asked for the missing runs: ask again after a pause, which doubles while `next` does not
        move."""
        self.pause = period if self.next != self.asked_next else min(2 * self.pause, pause_max)
        self.ask_at, self.asked_next = now + self.pause, self.next
        self.horizon = max(self.beyond, *self.early, 0) + 1

    def requests(self, conn: int, which: int, most: int) -> Iterator[object]:
        """The heads that request the missing runs from the peer."""
        if self.next == UNOPENED:
            yield SendFirst(conn, which)
        else:
            yield from (Resend(conn, which, low, high) for low, high in self.holes(most))

    def holes(self, most: int) -> Iterator[tuple[int, int]]:
        """The runs missing for longer than a period, as ranges, the lowest first, `most` runs in all."""
        low = self.next
        for seq in sorted(seq for seq in self.early if seq < self.horizon):
            if low < seq and most > 0:
                high = min(seq, low + most)
                yield low, high
                most -= high - low
            low = seq + 1
        if not self.early and low < self.beyond:  # before that they would be refused once more
            yield low, min(self.beyond, low + most)

    def go_on_at(self, seq: int, most: int) -> int:
        """Open the lane at `seq`, or skip to it.  Returns how many early runs are dropped because they lie outside."""
        before = len(self.early)
        self.next = seq
        self.early = {number: run for number, run in self.early.items() if 0 <= number - seq < most}
        return before - len(self.early)


class IncomingConnection:
    """A connection from one peer."""

    __slots__ = ("conn", "lanes", "lost_at", "tell_at", "tell_pause")

    def __init__(self, conn: int) -> None:
        self.conn = conn
        self.lanes = (InLane(), InLane())
        self.lost_at = 0  # when an acknowledgement may have been lost, if no run has arrived since; 0: none may be lost
        self.tell_at = 0  # while an acknowledgement may be lost: when to acknowledge again
        self.tell_pause = 0

    def lose(self, now: int, first_pause: int, pause_max: int, age: int) -> int | None:
        """An acknowledgement may be lost.  Returns the time of the next acknowledgement; None if this time is planned
        already, or if acknowledgements were repeated for `age`."""
        if not self.lost_at:
            self.lost_at, self.tell_pause = now, first_pause
        elif now < self.tell_at or now - self.lost_at >= age:
            return None
        else:
            self.tell_pause = min(2 * self.tell_pause, pause_max)
        self.tell_at = now + self.tell_pause
        for lane in self.lanes:
            lane.unreported += lane.next > 0
        return self.tell_at

    def close(self) -> int:
        """Drop all but the numbers at which the lanes ended.  Returns how many early runs were dropped."""
        count = sum(len(lane.early) for lane in self.lanes)
        for lane in self.lanes:
            lane.early, lane.unreported, lane.beyond = {}, 0, 0
        return count

    def owes(self) -> bool:
        """Whether this side owes the peer an acknowledgement or a request."""
        return any(lane.unreported or lane.waits() for lane in self.lanes)
