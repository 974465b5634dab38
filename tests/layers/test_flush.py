"""FLUSH: what a script as text cannot say.  The conversations stand in text/flush."""

from __future__ import annotations

import random

from pygroups.core.address import Address
from pygroups.core.events import HeldQuery, Installed, NewView, Stop
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack
from pygroups.core.view import Ballot, View
from pygroups.layers.flush import Flush

A, B = (Address(name, "0" * 16) for name in "AB")


def view(number: int) -> NewView:
    members = (A, B)
    return NewView(View(Ballot(number, A), members, ("a", "b")), Ballot(number - 1, A), members, (), (), True, None)


def test_a_view_that_ends_as_it_begins_sends_nothing() -> None:
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


def test_unicasts_that_were_left_go_all_the_same() -> None:
    flush = Flush(Env(A, 0, random.Random(1), Config()))
    run = Run(A, B, (), A, 1, 0, 1, pack([b"x"]))
    flush.down(run)
    flush.up_event(Stop(Ballot(2, A)))
    assert flush.below[0] == run
