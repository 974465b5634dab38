"""RATE: own multicasts leave at a limited rate, and fill the window until then."""

from __future__ import annotations

import random

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Excluded, Stability
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import SECOND, Config
from pygroups.core.run import Run
from pygroups.layers.rate import Rate, earned

ME = Address("A", "0" * 16)
CONFIG = Config(run_bytes=1_000, window=8_000, gossip_rate=1_000, gossip_burst=2_000)


def layer() -> Rate:
    return Rate(Env(ME, 0, random.Random(1), CONFIG))


def run(number: int, size: int = 1_000) -> Run:
    return Run(ME, None, (), ME, number, 0, 1, bytes(size))


def sent(rate: Rate) -> list[int]:
    """Take the numbers of the runs that have left."""
    numbers = [item.first for item in rate.below if isinstance(item, Run)]
    rate.below = []
    return numbers


@pytest.mark.parametrize(
    ("tokens", "passed", "expected"),
    [
        (0, SECOND, 1_000),
        (500, SECOND // 2, 1_000),
        (-1_000, SECOND, 0),
        (2_000, SECOND, 2_000),
        (0, 60 * SECOND, 2_000),
    ],
)
def test_what_a_pause_allows(tokens: int, passed: int, expected: int) -> None:
    assert earned(tokens, passed, 1_000, 2_000) == expected


def test_1_a_burst_leaves_at_once_and_the_rest_at_the_rate() -> None:
    rate = layer()
    for number in range(1, 7):
        rate.down(run(number))
    assert sent(rate) == [1, 2]
    left = {}
    for tenth in range(1, 60):
        rate.env.now = tenth * SECOND // 10
        if rate.wake <= rate.env.now:
            rate.timer()
        left |= dict.fromkeys(sent(rate), tenth / 10)
    assert list(left) == [3, 4, 5, 6]
    assert 2.9 < left[6] - left[3] < 3.2, "a run of 1,000 bytes a second"
    assert rate.wake == NEVER and rate.gauges() == {"waiting": 0}


def test_2_a_run_that_has_left_frees_the_window() -> None:
    rate = layer()
    rate.down(run(1))
    assert rate.above == [Stability({}, {}, 0, 2)]
    rate.above = []
    rate.down(run(2))
    rate.down(run(3))
    assert rate.above == [Stability({}, {}, 0, 3)], "run 3 waits"


def test_3_a_message_to_one_member_does_not_wait() -> None:
    rate = layer()
    for number in range(1, 5):
        rate.down(run(number))
    sent(rate)
    rate.down(Run(ME, Address("B", "1" * 16), (), ME, 9, 0, 1, b"x"))
    assert sent(rate) == [9]


def test_4_an_excluded_member_sends_nothing_more() -> None:
    rate = layer()
    for number in range(1, 5):
        rate.down(run(number))
    sent(rate)
    rate.up_event(Excluded("left", ""))
    assert rate.wake == NEVER and not rate.queue
