"""The runs of a numbered stream at one member: the runs before the first hole, the runs beyond it, and the holes."""

from __future__ import annotations

from .run import Run


class Window:
    """The window holds all runs in [low, next) and possibly some in [next, seen); runs below `low` are forgotten.

    Always low <= next <= seen.  The window does not look into the runs, and has no limit of its own.
    """

    __slots__ = ("low", "next", "runs", "seen")

    def __init__(self) -> None:
        self.low = 0
        self.next = 0  # the first number that has not arrived
        self.seen = 0  # above every number that was received or announced
        self.runs: dict[int, Run] = {}  # all of [low, next), and the early ones beyond

    def append(self, run: Run) -> None:
        """Store `run` as number `next`.  Only while no number beyond `next` is known."""
        assert self.next == self.seen, "append() behind a hole"
        self.runs[self.next] = run
        self.next = self.seen = self.next + 1

    def has(self, seq: int) -> bool:
        """Whether number `seq` has arrived; it may be forgotten since."""
        return seq < self.next or seq in self.runs

    def put(self, seq: int, run: Run) -> None:
        """Store `run` as number `seq`, which has not arrived before.  take() moves `next` over it."""
        assert not self.has(seq), "two runs with one number"
        self.runs[seq] = run
        self.hear_of(seq + 1)

    def hear_of(self, seen: int) -> None:
        """Note that all numbers below `seen` exist at some member."""
        self.seen = max(self.seen, seen)

    def take(self, limit: int) -> list[Run]:
        """Move `next` up to the first hole, at most to `limit`.  Returns the runs that it moved over."""
        taken = []
        while self.next < limit and (run := self.runs.get(self.next)) is not None:
            taken.append(run)
            self.next += 1
        return taken

    def missing(self, low: int, high: int, most: int, ranges_most: int) -> list[tuple[int, int]]:
        """The missing numbers in [low, high), as ascending half-open ranges: at most the first `most` numbers, in at
        most `ranges_most` ranges."""
        ranges: list[tuple[int, int]] = []
        for seq in range(max(low, self.next), high):
            if seq in self.runs:
                continue
            if most == 0:
                break
            if ranges and ranges[-1][1] == seq:
                ranges[-1] = (ranges[-1][0], seq + 1)
            elif len(ranges) == ranges_most:
                break
            else:
                ranges.append((seq, seq + 1))
            most -= 1
        return ranges

    def forget(self, below: int) -> None:
        """Forget all runs below `below`.  All these runs must have arrived."""
        if below <= self.low:
            return
        assert below <= self.next, "a run that has not arrived cannot be forgotten"
        for seq in range(self.low, below):
            del self.runs[seq]
        self.low = below

    @property
    def held(self) -> int:
        """The number of runs in [low, next)."""
        return self.next - self.low

    @property
    def early(self) -> int:
        """The number of runs beyond a hole."""
        return len(self.runs) - self.held
