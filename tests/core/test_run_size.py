"""Runs become smaller while many are lost, and large again afterwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.run_size import JUDGED, RunSize


class Sender:
    """A sender that cuts runs, of which some are requested again."""

    def __init__(self, least: int, most: int) -> None:
        self.size = RunSize(least, most, most)
        self.sent = self.requested = 0

    def cuts(self, again: int, runs: int = 2 * JUDGED) -> int:
        """The size after so many runs more, of which `again` were requested again."""
        self.sent += runs
        self.requested += again
        return self.size.look(self.sent, self.requested)


def test_many_losses_halve_it_down_to_the_least() -> None:
    sender = Sender(1_000, 4_000)
    assert [sender.cuts(again) for again in (2, 6, 7, 40, 60)] == [4_000, 4_000, 2_000, 1_000, 1_000]


def test_few_losses_double_it_up_to_the_most() -> None:
    sender = Sender(1_000, 4_000)
    assert [sender.cuts(again) for again in (100, 100, 2, 1, 0, 0)] == [2_000, 1_000, 1_000, 2_000, 4_000, 4_000]


def test_a_look_waits_for_enough_runs() -> None:
    assert Sender(1_000, 8_000).cuts(JUDGED - 1, runs=JUDGED - 1) == 8_000


@given(st.lists(st.integers(0, 300), max_size=40))
def test_it_stays_between_its_bounds(losses: list[int]) -> None:
    sender = Sender(700, 9_000)
    assert all(700 <= sender.cuts(lost) <= 9_000 for lost in losses)


def test_equal_bounds_never_move() -> None:
    sender = Sender(5, 5)
    assert {sender.cuts(lost) for lost in (0, 100, 0, 50)} == {5}
