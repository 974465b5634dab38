"""When a vote of STABLE leaves: the table of docs/layers/stable.md, row by row, and reasons that meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.core.layer import NEVER
from pygroups.core.limits import MILLISECOND, Config
from pygroups.layers.stable.vote_clock import (
    BYTES,
    NEWS,
    REASONS,
    REPEAT,
    RESUMED,
    RUNS,
    SEEN,
    VIEW,
    WANTED,
    Reason,
    VoteClock,
)
from pygroups.layers.stable.votes import Origin

NOTE = Path(__file__).parents[2] / "docs" / "layers" / "stable.md"
MS = MILLISECOND
CONFIG = Config(stable_period=200 * MS, stable_pause=5 * MS, stable_backoff_max=1_000 * MS)
NOW = 10_000 * MS


def clock_that_voted(at: int) -> VoteClock:
    """The clock of a member that voted at `at`; the repetition of that vote is left out."""
    clock = VoteClock(CONFIG)
    clock.begin(at)
    clock.due = False
    clock.voted(at)
    clock.at = NEVER
    return clock


def leaves_at(clock: VoteClock) -> int:
    return NOW if clock.due else clock.at


def test_the_note_shows_the_table() -> None:
    rows = [line.strip() for line in NOTE.read_text().splitlines() if line.startswith("   | ")][1:]
    assert rows == [
        f"| {reason.text} | {reason.after_vote.text} | {reason.after_now.text} "
        f"| {'yes' if reason.urgent else 'no'} | {'no' if reason.always else 'yes'} |"
        for reason in REASONS
    ]


@pytest.mark.parametrize(
    ("reason", "voted_ago", "chance", "leaves_in", "urgent"),
    [
        (VIEW, 0, 0, 0, False),
        (VIEW, 50 * MS, 0, 0, False),
        (BYTES, 0, 0, 0, True),
        (BYTES, 50 * MS, 0, 0, True),
        (WANTED, 0, 0, 0, True),
        (WANTED, 50 * MS, 0, 0, True),
        (RUNS, 0, 0, 5 * MS, True),
        (RUNS, 3 * MS, 0, 2 * MS, True),
        (RUNS, 5 * MS, 0, 0, True),
        (RUNS, 50 * MS, 0, 0, True),
        (NEWS, 0, 0, 100 * MS, False),
        (NEWS, 0, 100 * MS, 200 * MS, False),
        (NEWS, 150 * MS, 80 * MS, 30 * MS, False),
        (NEWS, 150 * MS, 10 * MS, 2 * MS, False),
        (NEWS, 900 * MS, 100 * MS, 20 * MS, False),
        (NEWS, 900 * MS, 0, 0, False),
        (SEEN, 0, 0, 200 * MS, False),
        (SEEN, 900 * MS, 0, 200 * MS, False),
        (REPEAT, 0, 0, 400 * MS, False),  # the vote before was the first: its repetition waits for one period
        (RESUMED, 900 * MS, 0, 1, False),
    ],
)
def test_a_row(reason: Reason, voted_ago: int, chance: int, leaves_in: int, urgent: bool) -> None:
    clock = clock_that_voted(NOW - voted_ago)
    if reason is NEWS:
        clock.first_news(NOW, chance)
    else:
        clock.arises(reason, NOW)
    assert leaves_at(clock) - NOW == leaves_in
    assert clock.urgent is urgent


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("settled", [True, False])
def test_a_reason_whose_moment_has_come_makes_a_vote_due_if_something_is_open(reason: Reason, settled: bool) -> None:
    clock = clock_that_voted(NOW)
    clock.arises(reason, NOW)
    at = clock.at
    if at != NEVER:
        clock.look(at - 1, lambda: settled)
        assert not clock.due
        clock.look(at, lambda: settled)
    assert clock.due is (reason.always or not settled)
    assert clock.at == NEVER


@pytest.mark.parametrize("first", REASONS)
@pytest.mark.parametrize("second", REASONS)
def test_of_two_reasons_the_one_that_is_ready_first_decides(first: Reason, second: Reason) -> None:
    alone = []
    for reason in (first, second):
        clock = clock_that_voted(NOW - 3 * MS)
        clock.arises(reason, NOW)
        alone.append(leaves_at(clock))
    both = clock_that_voted(NOW - 3 * MS)
    both.arises(first, NOW)
    both.arises(second, NOW)
    assert leaves_at(both) == min(alone)
    assert both.urgent is (first.urgent or second.urgent)


def test_a_repetition_waits_twice_as_long_as_the_one_before_and_news_begins_anew() -> None:
    clock = VoteClock(CONFIG)
    clock.begin(NOW)
    now, pauses = NOW, []
    for _ in range(5):
        clock.due = False
        clock.voted(now)
        pauses.append(clock.at - now)
        now = clock.at
        clock.look(now, lambda: False)
        assert clock.due
    assert pauses == [200 * MS, 400 * MS, 800 * MS, 1_000 * MS, 1_000 * MS]
    clock.first_news(now, 0)
    clock.voted(now)
    assert clock.at - now == 200 * MS


def test_a_vote_takes_news_and_urgency_with_it() -> None:
    clock = clock_that_voted(NOW - 50 * MS)
    clock.first_news(NOW, 0)
    clock.arises(BYTES, NOW)
    assert (clock.news, clock.urgent, clock.due) == (True, True, True)
    clock.voted(NOW)
    assert (clock.news, clock.urgent) == (False, False)


def test_after_the_stop_no_vote_leaves() -> None:
    for reason in REASONS:
        clock = clock_that_voted(NOW)
        clock.arises(reason, NOW)
        clock.stop()
        assert (clock.due, clock.news, clock.urgent, clock.at) == (False, False, False, NEVER)


@pytest.mark.parametrize(
    ("consumed", "delivered", "wanted", "reason"),
    [
        (0, 1, None, None),
        (0, 2, None, RUNS),
        (2_000, 2, None, BYTES),
        (0, 1, 2, WANTED),
        (0, 1, 3, None),
        (2_000, 2, 2, WANTED),
    ],
)
def test_what_of_one_origin_is_a_reason(
    consumed: int, delivered: int, wanted: int | None, reason: Reason | None
) -> None:
    """Bytes consumed of runs of one message and 1,000 bytes each; a sender waits for all below `wanted`."""
    origin = Origin(1, 1_500, own=False)
    for number in range(1, delivered + 1):
        origin.deliver(number, 1, 1_000)
    origin.consume(1 + consumed // 1_000)
    if wanted is not None:
        origin.want(wanted)
    assert origin.reason(runs_due=2) is reason
    origin.voted()
    assert origin.reason(runs_due=2) is None
