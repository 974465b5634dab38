"""What a batch of schedules comes down to: when it does not count, what was never hit, and how far it is."""

from __future__ import annotations

import pytest

from pygroups.cli.progress import progress_text
from pygroups.layers.profiles import PROFILES
from pygroups.sim.batches.coverage import NEVER_WITH, STAGES, faults_missing, retransmissions, zeros
from pygroups.sim.batches.runner import Outcome, Totals
from pygroups.sim.batches.summary import Summary, as_json, closing
from pygroups.sim.promises.broken import Witness
from pygroups.sim.schedules.draw import FAULTS, Wish

GOOD = {"messages": 300, "senders": 2, "messages heard": 300, "deliveries": 900, "views": 9}
HIT = {
    "crash of a coordinator": 1,
    "isolation of a coordinator": 1,
    "flush restarted": 1,
    "runs sent again": 1,
    "exclusion asked for": 1,
    "merges": 1,
    "state replaced": 1,
    "merges cancelled": 1,
    "pause at MergePropose": 1,
}


def summary(*outcomes: Outcome, times: int = 1, faults: tuple[str, ...] = FAULTS) -> Summary:
    totals = Totals()
    for outcome in outcomes * times:
        totals.add(outcome)
    return Summary(totals, Wish("total", faults=faults), 60.0)


def outcome(**changes: int) -> Outcome:
    counts = GOOD | HIT | {name.replace("_", " "): count for name, count in changes.items()}
    return Outcome(seed=1, witness=None, now=3_600_000_000, counts=counts, drops={"old view": 1})


@pytest.mark.parametrize(
    ("changes", "empty"),
    [
        ({}, False),
        ({"messages": 199, "messages_heard": 199}, True),
        ({"senders": 1}, True),
        ({"messages_heard": 149}, True),
        ({"messages_heard": 150}, False),
    ],
)
def test_a_schedule_that_tested_little_is_empty(changes: dict[str, int], empty: bool) -> None:
    assert outcome(**changes).empty is empty


def test_a_broken_promise_is_never_empty() -> None:
    assert not Outcome(seed=1, witness=Witness(promise="fifo", detail="")).empty


def test_more_than_two_in_a_hundred_empty_ones_fail() -> None:
    good, empty = outcome(), outcome(senders=1)
    assert summary(*[good] * 49, empty).shortcomings() == []
    (said,) = summary(*[good] * 48, empty, empty).shortcomings()
    assert said.startswith("2 of 50 schedules tested little, more than 2%")


@pytest.mark.parametrize("name", ["messages heard", *HIT, "deliveries", "views"])
def test_a_zero_fails_a_large_batch_only(name: str) -> None:
    nothing = outcome(**{name.replace(" ", "_"): 0})
    small, large = summary(nothing, times=299), summary(nothing, times=300)
    if name == "messages heard":
        assert small.zeros == large.zeros == []
        return
    assert small.shortcomings() == [] and "with 300 schedules or more, the command would fail" in closing(small)
    (said,) = large.shortcomings()
    assert said.startswith("in 300 schedules there were no ") and said.endswith(", so nothing tested them")


def test_a_promise_of_which_nothing_was_judged_is_named() -> None:
    one, other = outcome(), outcome()
    one.facts = {"integrity": 3, "state-cut": 0, "unicast-fifo": 0}
    other.facts = {"integrity": 4, "state-cut": 1, "unicast-fifo": 0}
    both = summary(one, other)
    assert "\n  not judged: state-cut, unicast-fifo" in closing(summary(one, one))
    assert both.not_judged == ["unicast-fifo"] and "\n  not judged: unicast-fifo" in closing(both)
    assert as_json(both, None, [], "")["facts"] == {"integrity": 7, "state-cut": 1, "unicast-fifo": 0}
    assert "not judged" not in closing(summary(other)), "of a single one nobody expects all"


def test_what_was_not_asked_for_may_be_zero() -> None:
    nothing = outcome(**dict.fromkeys((name.replace(" ", "_") for name in HIT), 0))
    assert summary(nothing, times=300, faults=("repeat",)).shortcomings() == []
    assert summary(nothing, times=300, faults=("loss",)).zeros == ["retransmissions"]
    assert zeros(("Gms",), ("crash",), GOOD | {"drops": 1}) == [
        "crashes of a coordinator",
        "restarted flushes",
        "retransmissions",
    ]
    parted = zeros(("Gms", "Merge2"), ("merge-leader",), GOOD | {"drops": 1})
    assert parted == [
        "merges",
        "states replaced in a merge",
        "merges without a merged view",
        "faults of a leader of a merge",
    ]
    assert zeros(("Gms",), ("merge-leader",), GOOD | {"drops": 1}) == [], "without MERGE2 nothing merges"
    assert zeros((), ("crash",), GOOD | {"drops": 1}) == ["retransmissions"], "without views nobody coordinates"


def test_the_rate_is_in_simulated_hours_a_minute() -> None:
    assert summary(outcome(), outcome()).hours_per_minute == pytest.approx(2.0)
    said = "2.0 hours simulated in 60.0 seconds: 2.00 simulated hours a minute"
    assert said in closing(summary(*[outcome()] * 2))


def test_the_stages_are_those_of_layers_that_exist() -> None:
    layers = {layer.__name__ for profile in PROFILES.values() for layer in profile.layers}
    assert set(STAGES) <= layers
    stages = [stage for of_layer in STAGES.values() for stage in of_layer]
    assert len(stages) == len(set(stages))


def test_a_stage_that_a_profile_cannot_have_is_not_missed() -> None:
    """A warning that always rings is not read: SEQUENCER keeps what waits for the next view itself."""
    kept = "multicasts queued for the next view"
    total = Summary(Totals(schedules=2), Wish("total"), 1.0)
    fifo = Summary(Totals(schedules=2), Wish("fifo"), 1.0)
    assert kept in fifo.never_hit and kept in fifo.stages
    assert kept not in total.never_hit and kept not in total.stages
    assert set(NEVER_WITH) <= {stage for of_layer in STAGES.values() for stage in of_layer}


def test_the_line_on_a_terminal() -> None:
    assert progress_text(30, 120, 10.0, {"crash": 3, "pause": 9}) == (
        "30 of 120 schedules, 3.0 a second, 30 s left; pause 9, crash 3"
    )
    assert progress_text(0, 120, 0.0, {}) == "0 of 120 schedules, 0.0 a second, ? left"
    assert "16 min 40 s left" in progress_text(100, 1_100, 100.0, {})


def test_a_fault_is_shown_by_its_counters() -> None:
    assert faults_missing(("crash", "loss"), {"crash": 1, "lost": 2}) == []
    assert faults_missing(("crash", "loss", "isolate"), {"crash": 1, "loss": 2}) == ["loss", "isolate"]


def test_retransmissions_are_runs_and_not_bytes() -> None:
    assert retransmissions({"runs sent again": 2, "unicast runs sent again": 3, "unicast bytes sent again": 999}) == 5
