"""A numbered stream as one member holds it: what is there without a hole, what is beyond one, what is missing."""

from __future__ import annotations

from .run import Run


class Window:
    """Everything in [low, next) is held here, of [next, seen) perhaps something; what is below `low` is forgotten.

    Always low <= next <= seen.  What the runs mean is for the layer; nothing here is bounded but by its caller.
    """

    __slots__ = ("low", "next", "runs", "seen")

    def __init__(self) -> None:
        self.low = 0
        self.next = 0  # the first number not yet had
        self.seen = 0  # every number that was received or heard of is below this
        self.runs: dict[int, Run] = {}  # all of [low, next), and what came early

    def append(self, run: Run) -> None:
        """Hold `run` as number `next`.  Only while nothing is known beyond it."""
        assert self.next == self.seen, "a hole cannot be appended to"
        self.runs[self.next] = run
        self.next = self.seen = self.next + 1

    def has(self, seq: int) -> bool:
        """Whether number `seq` was had, be it forgotten since."""
        return seq < self.next or seq in self.runs

    def put(self, seq: int, run: Run) -> None:
        """Hold `run`, which was not had, as number `seq`; take() moves over it."""
        assert not self.has(seq), "one number, two runs"
        self.runs[seq] = run
        self.hear_of(seq + 1)

    def hear_of(self, seen: int) -> None:
        """Numbers below `seen` exist somewhere."""
        self.seen = max(self.seen, seen)

    def take(self, limit: int) -> list[Run]:
        """Move `next` over what is held there, below `limit`, and give back what it moved over."""
        taken = []
        while self.next < limit and (run := self.runs.get(self.next)) is not None:
            taken.append(run)
            self.next += 1
        return taken

    def missing(self, low: int, high: int, most: int, ranges_most: int) -> list[tuple[int, int]]:
        """What of [low, high) was not had, as ascending half-open ranges: the first `most` numbers at most, in at
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
        """Let go of everything below `below`, which was had."""
        if below <= self.low:
            return
        assert below <= self.next, "only what was had may be forgotten"
        for seq in range(self.low, below):
            del self.runs[seq]
        self.low = below

    @property
    def held(self) -> int:
        """How many runs lie in [low, next)."""
        return self.next - self.low

    @property
    def early(self) -> int:
        """How many runs lie beyond a hole."""
        return len(self.runs) - self.held
