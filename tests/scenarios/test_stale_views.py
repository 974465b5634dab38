"""A member hears that another one went on, and cannot tell it anything: its view ends."""

from __future__ import annotations

import pytest

from pygroups.sim import scenario
from tests.scenarios.common import BOTH


@BOTH
@pytest.mark.parametrize("sends", [False, True])
def test_a_member_that_is_heard_in_a_later_view_counts_as_gone(profile: str, sends: bool) -> None:
    """No frame of C reaches A any more, and for five seconds none of A reaches C.  A is alone soon.  Then C hears A
    again: each frame is a sign of life, although A is in another view."""
    with scenario("A C", profile=profile) as group:
        if sends:
            group["A"].tells("C", 60, every=1.0)
        group.cut("C", "A", way="out")
        group.after(2)
        group.cut("A", "C", way="out")
        group.after(5)
        group.mend("A", "C", way="out")
        group.until(lambda: group["C"].view == ("C",), within=12)
        assert group["A"].view == ("A",)
        group["C"].sends(1)
        group.until(lambda: group["C"].delivered_from("C") == [1], within=5)
        group.heal()
        group.until(lambda: group["A"].view == group["C"].view == ("A", "C"), within=20)


def test_three_go_on_and_the_fourth_hears_them() -> None:
    with scenario("A B C D") as group:
        group.cut("D", "A B C", way="out")
        group.after(2)
        group.cut("A B C", "D", way="out")
        group.after(6)
        group.mend("A B C", "D", way="out")
        group.until(lambda: group["D"].view == ("D",), within=16)
        assert group["A"].view == ("A", "B", "C")
