"""Marks of origins that follow the streams from view to view."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.layers.streams.marks import forget_outside

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")


def test_the_origins_that_were_in_a_view_last_are_kept() -> None:
    """A sent first, and left last."""
    marks = {A: 5, B: 3, C: 2}
    forget_outside(marks, (A, B, C), most=1)
    forget_outside(marks, (A, C), most=1)
    assert marks == {A: 5, B: 3, C: 2}
    forget_outside(marks, (C,), most=1)
    assert marks == {A: 5, C: 2}
    forget_outside(marks, (D,), most=1)
    assert marks == {C: 2}


def test_a_member_is_never_forgotten() -> None:
    marks = {A: 5, B: 3, C: 2}
    forget_outside(marks, (A, B, C), most=1)
    assert marks == {A: 5, B: 3, C: 2}
