"""FLUSH: what a script as text cannot say.  The conversations stand in text/flush."""

from __future__ import annotations

import random

from pygroups.core.address import Address
from pygroups.core.events import Excluded, HeldQuery, Installed, NewView, Positions, Stop
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.flush import Flush

A, B = (Address(name, "0" * 16) for name in "AB")


def view(number: int, cut: Positions | None = None) -> NewView:
    members, old = (A, B), ViewId(number - 1, A)
    return NewView(AgreedView(ViewId(number, A), members, ("a", "b")), old, members, (), (), True, None, cut=cut or {})


def test_7_a_view_that_ends_as_it_begins_sends_nothing() -> None:
    """What waited for it waits for the next one: below, nobody may number anything of a view that is on its way out."""
    flush = Flush(Env(A, 0, random.Random(1), Config()))
    flush.up_event(Stop(Ballot(2, A)))
    run = Run(A, None, (), A, 1, 0, 1, pack([b"x"]))
    flush.down(run)
    flush.above, flush.below = [], []
    flush.up_event(view(2))
    flush.up_event(Stop(Ballot(3, A)))
    assert [type(item) for item in flush.below] == [Installed, HeldQuery]
    assert flush.gauges()["waiting"] == 1
    flush.below = []
    flush.up_event(view(3))
    assert [item for item in flush.below if isinstance(item, Run)] == [run]
    assert flush.gauges()["waiting"] == 0


def test_8_nothing_beyond_the_cut_is_handed_up() -> None:
    """What was fetched for a higher ballot than the one whose view comes is in nobody else's old view."""
    for end in (view(2, {A: 2, B: 0}), Excluded("left", "", {A: 2, B: 0})):
        flush = Flush(Env(A, 0, random.Random(1), Config()))
        flush.up_event(Stop(Ballot(3, A)))
        runs = [Run(A, None, (), A, seq + 1, 0, 1, pack([b"x"]), A, seq) for seq in range(3)]
        for run in runs:
            flush.up(run)
        flush.up_event(end)
        assert [item for item in flush.above if isinstance(item, Run)] == runs[:2]
        assert flush.marks == {A: 3} and flush.env.drops == {"run beyond the cut": 1}


def test_nothing_is_sent_or_handed_up_after_the_end() -> None:
    """A layer above may send in the turn in which this member learns that it is excluded.  Below, the streams of its
    view are gone: its message would be the first one of a stream again, and come back to layers that have no view."""
    flush = Flush(Env(A, 0, random.Random(1), Config()))
    flush.up_event(view(2))
    flush.up_event(Excluded("excluded", ""))
    flush.above, flush.below = [], []
    flush.down(Run(A, None, (), A, 1, 0, 1, pack([b"x"])))
    flush.up(Run(B, None, (), B, 1, 0, 1, pack([b"x"]), B, 0))
    assert flush.above == flush.below == []


def test_unicasts_that_were_left_go_all_the_same() -> None:
    flush = Flush(Env(A, 0, random.Random(1), Config()))
    run = Run(A, B, (), A, 1, 0, 1, pack([b"x"]))
    flush.down(run)
    flush.up_event(Stop(Ballot(2, A)))
    assert flush.below[0] == run
