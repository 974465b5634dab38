"""The planted histories that the audit is tested with go through the running checks: the verdicts must be equal."""

from __future__ import annotations

from collections import Counter

import pytest

from pygroups.layers.profiles import PROFILES
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.judge import Judge
from tests.pipeline.catalog import all_planted
from tests.pipeline.planted import Planted
from tests.sim.judged_history import judged, lines

GAPS_COME_WITH_A_VIEW = "a journal may have a gap anywhere, an event has gaps only in a view"
JOURNALS_ARE_MISSING = "journals are missing, a running check hears everything"
NOT_BUILT = {
    "gap-over-own-A": GAPS_COME_WITH_A_VIEW,
    "gap-over-own-C": GAPS_COME_WITH_A_VIEW,
    "gap-late-A": GAPS_COME_WITH_A_VIEW,
    "gap-late-B": GAPS_COME_WITH_A_VIEW,
    "behind-a-hole-A": "a journal loses records, a running check hears everything",
    "behind-a-hole-C": "a journal loses records, a running check hears everything",
    **{f"uniform-without-the-dead-{at}": JOURNALS_ARE_MISSING for at in "AC"},
    **{f"uniform-behind-a-hole-{at}": "a journal loses records, a running check hears everything" for at in "AC"},
    "merged-in-uniform": GAPS_COME_WITH_A_VIEW,
    **{
        f"{name}-{at}-{ends}": reason
        for name, reason in {
            "unplaced": "a journal may lack a position, an event has one",
            "swapped-with-positions": "a running check hears the order, and names a wrong position as integrity",
            "hole-in-positions": "a running check names a wrong position as integrity",
            "sent-twice": "an application cannot hand in a message under a number of its choice",
            "stranger-named": "a running check compares members of the view alone",
            "skipped-with-a-gap": GAPS_COME_WITH_A_VIEW,
        }.items()
        for at in "AC"
        for ends in ("living", "dead")
    },
    **{f"gap-over-the-dead-{profile}": GAPS_COME_WITH_A_VIEW for profile in ("fifo", "total", "uniform")},
    "same-number-twice-A": "an application cannot hand in a message under a number of its choice",
    "same-number-twice-C": "an application cannot hand in a message under a number of its choice",
    **{
        f"{name}-{at}": "no journal has a mark of quiet, of which a running check is told"
        for name in ("left-lacking", "left-without-own")
        for at in "AC"
    },
    "epsilon-left-after-a-gap": "no journal has a mark of quiet, of which a running check is told",
    **{
        f"waited-{what}-{at}": "journals say where a program goes on, a running check hears what it gets"
        for what in ("set-without", "lost", "lost-later", "gives-more")
        for at in "AC"
    },
    **{f"replaced-twice-untold-{at}": "journals say what a state lacks, a program is told by gaps" for at in "BCE"},
    "state-passed-on": "these histories are told as if every state were given before the view it belongs to",
    "state-of-later-A": "a journal is missing, a running check hears everything",
    "state-of-later-C": "a journal is missing, a running check hears everything",
    **{f"chain-without-{what}": JOURNALS_ARE_MISSING for what in ("the-founder", "journal-A", "journal-B")},
    "merged-without-journals": JOURNALS_ARE_MISSING,
    **{
        f"copied-between-unicasts-{at}": "a journal is a copy from before the end, a running check hears everything"
        for at in "AB"
    },
    **{
        f"copied-before-a-split-{later}-{at}": "a journal is a copy from before the end, a check hears everything"
        for at in "AC"
        for later in ("there", "gone")
    },
    "excluded-without-a-journal": "a journal is missing, a running check hears everything",
    "marks-elsewhere": "two groups used one folder, a judge hears one group",
    "a-fault-elsewhere": "two groups used one folder, a judge hears one group",
}
DUTIES = ("join-in-time", "leave-in-time", "merge-in-time", "repair-in-time", "stable-in-time", "window-in-time")
TOLD = (
    "left-and-joined",
    "primary-hint",
    "one-primary",
    "slow-exclusion",
    "window-bound",
)  # of what an application is told, and reads
# journals know no links and no applications, nor when a line was written
ONLY_RUNNING = {
    *DUTIES,
    *TOLD,
    "progress",
    "few-views",
    "request-pace",
    "checks-membership",
    "views-in-order",
    "journal-first",
    "confirmed",
}
ALL = {planted.group: planted for planted in all_planted()}
PLANTED = [planted for group, planted in ALL.items() if group not in NOT_BUILT]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.group)
def test_a_planted_fault_breaks_what_it_breaks_and_nothing_else(planted: Planted) -> None:
    history = planted.make(planted.group)
    broken = judged(history).broken
    assert {witness.promise for witness in broken} == planted.breaks, "\n".join(lines(history, broken))


def test_four_histories_break_each_promise_that_journals_show() -> None:
    """The audit judges the same histories.  `causal` follows from other promises there, and has its own histories."""
    checks = [
        check for profile in ("fifo", "total", "uniform", "gossip") for check in checks_of(PROFILES[profile].services)
    ]
    promises = {promise for check in checks for promise in check.promises} - ONLY_RUNNING - {"causal"}
    count = Counter(promise for planted in PLANTED for promise in planted.breaks)
    assert {promise for promise in promises if count[promise] < 4} == set()


def test_what_is_left_out_is_in_the_catalog() -> None:
    assert NOT_BUILT.keys() <= ALL.keys()


TRAPS = {
    "a crashed member's last block is cut off and compared at equal length": ("cut-block-C", "cut-block-swapped-C"),
    "two messages that the reference member never saw": ("ahead-total-A", "unseen-by-reference"),
    "no pair is in opposite order, and yet there is no order": ("clean-total", "cycle"),
    "the dead are compared too": ("clean-total", "swapped-C-dead"),
    "as many messages are not the same messages": ("clean-total", "exchanged-C-living"),
    "who delivered first may be dead": ("ahead-total-A", "late-after-a-death-C"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_broke_a_checker_before(trap: str) -> None:
    good, bad = (ALL[group].make(group) for group in TRAPS[trap])
    judge = judged(good)
    assert judge.broken == [] and judge.facts["total-order"] > 0
    assert {witness.promise for witness in judged(bad).broken} == ALL[TRAPS[trap][1]].breaks != set()


@pytest.mark.parametrize("at", ["A", "C"])
def test_the_dead_may_be_ahead_in_total_and_not_in_uniform(at: str) -> None:
    """It orders and delivers a message, dies before a byte leaves, and the others deliver the resend one view later."""
    assert judged(ALL[f"ahead-total-{at}"].make("ahead")).broken == []
    broken = {witness.promise for witness in judged(ALL[f"ahead-uniform-{at}"].make("ahead")).broken}
    assert broken == {"same-view-delivery", "uniform-agreement", "total-order-global"}


def test_each_promise_counts_what_it_judged() -> None:
    facts = judged(ALL["clean-total"].make("clean")).facts
    silent = {promise for promise, count in facts.items() if not count}
    unicasts = {"unicast-fifo", "unicast-once", "unicast-reported"}
    merges = {"merge-agreement", "merge-announced"}
    assert silent - ONLY_RUNNING == {"state-cut", *unicasts, *merges}, "nothing of that kind happened"
    assert (facts["self-inclusion"], facts["total-order"]) == (15, 73)
    assert judged(ALL["state-right"].make("state")).facts["state-cut"] == 2
    assert judged(ALL["unicast-right"].make("unicast")).facts["unicast-fifo"] == 5
    merged = judged(ALL["merged"].make("merged")).facts
    assert (merged["merge-agreement"], merged["merge-announced"]) == (4, 16), "4 members, and 4 origins at each"
    assert "total-order" not in judged(ALL["clean-fifo"].make("clean")).facts


def test_each_promise_is_broken_by_several_histories() -> None:
    """At one member and at another, for the living and for the dead, where a promise is about them."""
    times = {promise: 0 for planted in PLANTED for promise in planted.breaks}
    for planted in PLANTED:
        for promise in planted.breaks:
            times[promise] += 1
    running = set(Judge(checks_of(PROFILES["uniform"].services | {"MERGING"})).promises) | {"gap-announced", "epsilon"}
    assert times.keys() == running - {"causal", *ONLY_RUNNING}, (
        "causal is broken only where something else is that it follows from"
    )
    assert {promise: count for promise, count in times.items() if count < 4} == {}
