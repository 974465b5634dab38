"""request-pace: requests for the same missing run, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.core.view import ViewId
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Viewed, WorldFacts
from pygroups.sim.promises.pace import RequestPace

A, B = (Address(name, f"{number:016x}") for number, name in enumerate("AB", 1))
CONFIG = Config()
PERIOD = CONFIG.nakack_period
DOUBLED = [(0, 7), (1, 7), (3, 7), (7, 7), (15, 7), (31, 7), (56, 7), (81, 7)]  # the period, and the lowest run
EACH = [(period, 7) for period in range(11)]


def judged(requests: Sequence[tuple[int, int]], between: str = "", config: Config = CONFIG) -> RequestPace:
    """The requests of B; before the last one, `between` happens."""
    check = RequestPace()
    now = 0
    check.around = WorldFacts(clock=lambda: now, config=config)
    view = Viewed(B, ViewId(2, A), (A, B), None, None, (), None)
    for place, (period, low) in enumerate(requests, 1):
        if place == len(requests) and between:
            {
                "view": lambda: check.viewed(view),
                "flush": lambda: check.accepts(B, {}),
                "merge": lambda: check.merge_accepted(B, view.id, view.id),
            }[between]()
        now = period * PERIOD
        check.runs_requested(B, A, low)
    return check


GOOD = {
    "pauses double": (DOUBLED, ""),
    "each period another run": ([(period, period) for period in range(100)], ""),
    "two runs in turn": ([(period, 7 - period % 2) for period in range(18)], ""),  # 6 is the first that lacks
    "eleven in 50 periods": ([(5 * period, 7) for period in range(30)], ""),
    **{f"a {what} between": (EACH, what) for what in ("view", "flush", "merge")},
}
PLANTED = {
    "in each period": EACH,
    "in each period, after a pause": [(0, 7), *((50 + period, 7) for period in range(11))],
    "with a later run between": [(period, low) for period in range(11) for low in (7, 9)][:-1],
    "just too often": [(5 * period, 7) for period in range(10)] + [(49, 7)],
}


def test_short_pauses_allow_more_requests() -> None:
    """With pauses of at most 50 ms a run is requested every 40 ms or so; every 20 ms is a storm still."""
    config = Config(nakack_backoff_max=50_000)
    assert judged([(2 * count, 7) for count in range(40)], config=config)
    with pytest.raises(Broken, match="was requested"):
        judged([(count, 7) for count in range(40)], config=config)


@pytest.mark.parametrize("name", GOOD)
def test_what_is_good_holds(name: str) -> None:
    requests, between = GOOD[name]
    assert judged(requests, between).facts() == {"request-pace": len(requests)}


@pytest.mark.parametrize("name", PLANTED)
def test_requests_without_back_off_are_found(name: str) -> None:
    judged(PLANTED[name][:-1])
    with pytest.raises(Broken) as caught:
        judged(PLANTED[name])
    assert (caught.value.witness.promise, caught.value.witness.member) == ("request-pace", str(B))
