"""Window against a plain list of what was had."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pygroups.core.address import Address
from pygroups.core.run import Run
from pygroups.core.window import Window

A = Address("A", "0" * 16)
SEQS = st.integers(0, 40)


class AgainstAList(RuleBasedStateMachine):
    """`had` says of each number below 64 whether it was had; `taken` is how far take() was to go."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window()
        self.had = [False] * 64
        self.taken = 0
        self.purged = 0
        self.heard = 0

    @rule(seq=SEQS)
    def put(self, seq: int) -> None:
        assert self.window.has(seq) == self.had[seq]
        if not self.had[seq]:
            self.window.put(seq, Run(A, None, first=seq))
            self.had[seq] = True
            self.heard = max(self.heard, seq + 1)

    @rule(limit=SEQS)
    def take(self, limit: int) -> None:
        expected = []
        while self.taken < limit and self.had[self.taken]:
            expected.append(self.taken)
            self.taken += 1
        assert [run.first for run in self.window.take(limit)] == expected

    @rule(seen=SEQS)
    def hear_of(self, seen: int) -> None:
        self.window.hear_of(seen)
        self.heard = max(self.heard, seen)

    @precondition(lambda self: self.window.next == self.window.seen < 60)
    @rule()
    def append(self) -> None:
        self.window.append(Run(A, None, first=self.taken))
        self.had[self.taken] = True
        self.taken += 1
        self.heard = max(self.heard, self.taken)

    @rule(share=st.floats(0, 1))
    def forget(self, share: float) -> None:
        below = int(self.taken * share)
        self.window.forget(below)
        self.purged = max(self.purged, below)

    @rule(low=SEQS, high=SEQS, most=st.integers(1, 9), ranges=st.integers(1, 4))
    def missing(self, low: int, high: int, most: int, ranges: int) -> None:
        """The first `most` missing numbers, as far as `ranges` ranges reach."""
        found = self.window.missing(low, high, most, ranges)
        numbers = [seq for start, end in found for seq in range(start, end)]
        absent = [seq for seq in range(max(low, self.taken), high) if not self.had[seq]]
        assert numbers == absent[: len(numbers)]
        assert len(found) <= ranges and len(numbers) <= most
        assert all(end < start for (_, end), (start, _) in pairwise(found)), "ranges do not touch"
        if len(found) < ranges:
            assert len(numbers) == min(most, len(absent))

    @invariant()
    def holds(self) -> None:
        window = self.window
        assert (window.low, window.next, window.seen) == (self.purged, self.taken, self.heard)
        assert sorted(window.runs) == [seq for seq in range(64) if self.had[seq] and seq >= self.purged]
        assert window.held == self.taken - self.purged
        assert window.early == sum(self.had[self.taken :])


TestWindowAgainstAList = AgainstAList.TestCase
TestWindowAgainstAList.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_what_was_not_had_is_not_forgotten() -> None:
    window = Window()
    window.append(Run(A, None))
    window.hear_of(5)
    with pytest.raises(AssertionError, match="has not arrived"):
        window.forget(2)


def test_nothing_is_appended_beyond_a_hole() -> None:
    window = Window()
    window.put(1, Run(A, None))
    with pytest.raises(AssertionError, match="hole"):
        window.append(Run(A, None))
