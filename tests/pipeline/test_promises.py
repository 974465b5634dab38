"""Every rule sees its planted faults, and nothing else fires; drawn schedules, untouched, break nothing.

Two audits judge all histories (`conftest.py`): an audit costs its plan, and hardly the number of groups.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from pygroups.journal.schema import services_of_v1
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.verdict import AuditResult, Verdict
from tests.pipeline.catalog import all_planted
from tests.pipeline.drawn import FULL_DISKS, FULL_DISKS_FIRST, PROFILES, SCHEDULES, UNICAST_FIRST
from tests.pipeline.planted import Planted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PLANTED = all_planted()


@pytest.fixture(scope="module")
def verdicts(judged_whole: AuditResult, judged_with_holes: AuditResult) -> dict[str, dict[str, Verdict]]:
    by_group: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for verdict in [*judged_whole.verdicts, *judged_with_holes.verdicts]:
        worst = by_group[verdict.group].setdefault(verdict.promise, verdict)
        if verdict.broken and not worst.broken:  # in another history of the group
            by_group[verdict.group][verdict.promise] = verdict
    return by_group


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.group)
def test_a_planted_fault_breaks_what_it_breaks_and_nothing_else(
    planted: Planted, verdicts: dict[str, dict[str, Verdict]]
) -> None:
    broken = {name: verdict.violations[:3] for name, verdict in verdicts[planted.group].items() if verdict.broken}
    assert set(broken) == planted.breaks, broken


def test_every_rule_was_seen_to_fire_and_to_hold(verdicts: dict[str, dict[str, Verdict]]) -> None:
    fired = {promise for planted in PLANTED for promise in planted.breaks}
    held = {v.promise for group in verdicts.values() for v in group.values() if v.verdict == "held"}
    assert fired == held == {rule.promise for rule in RULES}


def test_drawn_schedules_break_nothing(drawn: list[dict[str, Any]], judged_whole: AuditResult) -> None:
    """Those of every profile, as the simulator draws them today, and as its own checks have passed them."""
    assert [(answer["profile"], answer["failure"]) for answer in drawn] == [(profile, None) for profile in PROFILES]
    groups = {f"seed-{seed}" for seed in range(SCHEDULES * len(PROFILES))}
    found = [verdict for verdict in judged_whole.verdicts if verdict.group in groups]
    assert {verdict.group for verdict in found} == groups and judged_whole.quarantined == []
    broken = {(verdict.promise, verdict.group): verdict.violations[:2] for verdict in found if verdict.broken}
    assert broken == {}
    held = {verdict.promise for verdict in found if verdict.verdict == "held"}
    given = [frozenset(services_of_v1(profile)) for profile in PROFILES]
    made = {rule.promise for rule in RULES if any(rule.services <= services for services in given)}
    assert held == made, "each rule had something to judge"


def test_drawn_schedules_without_a_group_break_nothing(
    drawn_unicast: dict[str, Any], judged_whole: AuditResult
) -> None:
    assert (drawn_unicast["profile"], drawn_unicast["failure"]) == ("unicast", None)
    groups = {f"seed-{UNICAST_FIRST + seed}" for seed in range(SCHEDULES)}
    found = [verdict for verdict in judged_whole.verdicts if verdict.group in groups]
    assert {verdict.group for verdict in found} == groups
    assert {(v.promise, v.group): v.violations[:2] for v in found if v.broken} == {}
    held = {verdict.promise for verdict in found if verdict.verdict == "held"}
    assert held == {"run-identity", "integrity", "unicast-fifo", "unicast-once", "unicast-reported"}
    reasons = {verdict.reason for verdict in found if verdict.promise == "liveness"}
    assert reasons == {"journals of the profile unicast have no views; unicast-reported judges what arrives"}


def test_a_loss_by_a_full_disk_accuses_nobody(judged_with_holes: AuditResult) -> None:
    """Also if it lasts to the end of the member: the journal does not end as after a kill."""
    groups = {f"seed-{FULL_DISKS_FIRST + seed}" for seed in range(FULL_DISKS * len(PROFILES))}
    found = [verdict for verdict in judged_with_holes.verdicts if verdict.group in groups]
    assert {verdict.group for verdict in found} == groups and judged_with_holes.quarantined == []
    assert {(v.promise, v.group): v.violations[:2] for v in found if v.broken} == {}
    assert sum(verdict.skipped for verdict in found if verdict.promise == "integrity") > 20


def test_a_witness_names_promise_member_and_message(verdicts: dict[str, dict[str, Verdict]]) -> None:
    (witness,) = verdicts["one-view-late-C-dead"]["virtual-synchrony"].violations
    assert (witness.promise, witness.group, witness.view) == ("virtual-synchrony", "one-view-late-C-dead", "1:A@410")
    assert (witness.member, witness.origin, witness.first, witness.position) == ("C@430", "B@420", 5, 16)
    assert witness.other in ("A@410", "B@420", "D@440")
    assert witness.detail == f"not delivered here in this view: {witness.other} did"


def test_integrity_names_each_member_that_delivered_another_body_than_the_origin_sent(
    verdicts: dict[str, dict[str, Verdict]],
) -> None:
    """Labels are hashed: of twelve runs about half would have the greater hash at the members that are right."""
    found = verdicts["altered-twice-A-living"]["integrity"].violations
    assert sorted((witness.member, witness.first) for witness in found) == [
        (member, first) for member in ("A@410", "D@440") for first in range(5, 17)
    ]
    assert {(witness.origin, witness.view) for witness in found} == {("B@420", "1:A@410")}
    (own,) = verdicts["altered-C-dead"]["integrity"].violations
    assert (own.member, own.detail) == ("C@430", "delivered with another body than B@420 sent")
    unsent = verdicts["unsent-C-living"]["integrity"].violations
    assert [witness.member for witness in unsent] == ["A@410", "B@420", "C@430", "D@440"]


@pytest.mark.parametrize("at", ["A@410", "C@430"])
def test_of_two_lists_the_one_that_most_members_have_is_right(verdicts: dict[str, dict[str, Verdict]], at: str) -> None:
    (witness,) = verdicts[f"other-list-{at[0]}-living"]["view-agreement"].violations
    assert witness.member == at
    assert witness.detail == f"{witness.other} has another list of members; at place 1 D@440 here and A@410 there"


@pytest.mark.parametrize("ends", ["living", "dead"])
@pytest.mark.parametrize("member", ["A@410", "C@430"])
def test_twelve_altered_bodies_are_twelve_witnesses_of_the_member_that_has_them(
    verdicts: dict[str, dict[str, Verdict]], member: str, ends: str
) -> None:
    judged = verdicts[f"altered-12-times-{member[0]}-{ends}"]
    for promise in ("integrity", "run-identity"):
        found = [(witness.member, witness.first) for witness in judged[promise].violations]
        assert sorted(found) == [(member, first) for first in range(5, 17)], promise


def test_what_has_no_place_in_an_order_breaks_the_order_and_is_not_taken_for_missing(
    verdicts: dict[str, dict[str, Verdict]],
) -> None:
    (witness,) = verdicts["unplaced-C-living"]["total-order"].violations
    assert (witness.member, witness.origin, witness.first) == ("C@430", "D@440", 5)
    assert verdicts["unplaced-C-living"]["gap-free-prefix"].skips == {
        "delivered without a place in the order of its view": 1
    }


def test_who_a_fault_may_have_kept_from_a_merged_view_is_skipped(verdicts: dict[str, dict[str, Verdict]]) -> None:
    why = "a fault may have kept a member from a merged view that it accepted"
    for at in "AD":
        agreement = verdicts[f"merged-in-a-fault-{at}"]["merge-agreement"]
        assert (agreement.verdict, agreement.judged, agreement.skips) == ("held", 7, {why: 1})
    (witness,) = verdicts["merge-divided-D"]["merge-agreement"].violations
    assert (witness.view, witness.member, witness.other) == ("4:A@410", "D@440", "C@430")
    assert "which also came from view 3:C@430" in witness.detail


def test_gaps_over_what_only_a_missing_journal_can_show_are_skipped(verdicts: dict[str, dict[str, Verdict]]) -> None:
    announced = verdicts["merged-without-journals"]["merge-announced"]
    why = "a journal that may show who delivered is missing or ends early"
    assert (announced.verdict, announced.judged, announced.skips) == ("not judged", 0, {why: 2})
    (witness,) = verdicts["gap-short-A"]["merge-announced"].violations
    assert (witness.member, witness.origin, witness.first) == ("A@410", "E@450", 1)
    assert witness.detail.startswith("announces 1 to 3 with 3 messages, and lacks 1 to 5")


def test_who_accepted_a_view_is_not_known_from_a_missing_journal(verdicts: dict[str, dict[str, Verdict]]) -> None:
    came = "the journal of a member that came from the view before is missing or ends early"
    hidden = "the journal of a member that may have accepted the view is missing or ends early"
    chain = verdicts["chain-without-journal-B"]["primary-chain"]
    assert (chain.verdict, chain.judged, chain.skips) == ("held", 1, {came: 2, hidden: 1})
    founded = verdicts["chain-without-the-founder"]["primary-chain"]
    assert (founded.verdict, founded.judged, founded.skips) == ("not judged", 0, {came: 2})
    (witness,) = verdicts["chain-minority"]["primary-chain"].violations
    assert (witness.view, witness.member) == ("2:A@410", "A@410")
    assert witness.detail == "no majority of the view before accepted this view under one ballot"


def test_one_view_at_quiet_is_not_known_without_the_journal_of_one_of_its_members(
    verdicts: dict[str, dict[str, Verdict]],
) -> None:
    why = "the journal of a member of the last view is missing or ends early"
    alone = verdicts["chain-without-the-founder"]["liveness"]
    assert (alone.verdict, alone.judged, alone.skips) == ("not judged", 0, {why: 1})
    late = verdicts["late-without-a-journal"]["liveness"]
    assert (late.verdict, len(late.violations)) == ("broken", 3), "that a view came late needs no other journal"


def test_a_loss_that_a_missing_journal_may_explain_is_skipped(verdicts: dict[str, dict[str, Verdict]]) -> None:
    accuracy = verdicts["excluded-without-a-journal"]["view-accuracy"]
    assert accuracy.skips["a journal that may hold a mark or a leave is missing or ends early"] == 2


def test_what_stands_behind_a_hole_is_skipped_with_the_reason(verdicts: dict[str, dict[str, Verdict]]) -> None:
    fifo = verdicts["behind-a-hole-C"]["fifo"]
    assert fifo.verdict == "held"
    assert fifo.skips == {"a journal has a hole or damage before these facts": 6}


def test_what_an_open_journal_does_not_have_yet_is_skipped_with_the_reason(
    verdicts: dict[str, dict[str, Verdict]],
) -> None:
    """Journals copied one after another, while the members run."""
    copied = verdicts["copied-while-running-C"]
    sent = {"the journal of the origin is open, and ends before these facts": 10}
    assert (copied["integrity"].skips, copied["integrity"].judged) == (sent, 98)
    member = {"the journal of a member is open, and ends in this view or before": 6}
    assert copied["stability-safety"].skips == member
    assert copied["state-cut"].skips == {"the journal of the provider is open": 1}
    receiver = verdicts["copied-between-unicasts-B"]["unicast-reported"]
    assert receiver.skips == {"the journal of the receiver is open": 2}
    (witness, *_) = verdicts["unsent-in-a-copy-C"]["integrity"].violations
    assert witness.detail == "delivered, but C@430 never sent it"


def test_without_the_origins_journal_integrity_is_skipped(verdicts: dict[str, dict[str, Verdict]]) -> None:
    integrity = verdicts["without-journal-C"]["integrity"]
    assert integrity.skips == {"the journal of the origin is missing": 15}
    assert integrity.judged == 45
    accuracy = verdicts["without-journal-C"]["view-accuracy"]
    assert accuracy.skips == {"the journal of a member of the last view is missing or ends early": 3}


def test_a_profile_is_judged_by_what_it_promises_only(verdicts: dict[str, dict[str, Verdict]]) -> None:
    order = verdicts["clean-fifo"]["total-order"]
    assert (order.verdict, order.judged, order.excused) == ("not judged", 0, True)
    assert order.reason == "the profile fifo does not make this promise"
    assert verdicts["clean-total1999"]["total-order"].verdict == "held"


def test_no_facts_are_never_held(judged_whole: AuditResult) -> None:
    assert all(verdict.judged > 0 for verdict in judged_whole.verdicts if verdict.verdict == "held")
    state = next(v for v in judged_whole.verdicts if v.group == "clean-total" and v.promise == "state-cut")
    assert (state.verdict, state.reason, state.excused) == ("not judged", "no state was given", True)


def test_a_uniform_history_is_judged_under_its_history_id(judged_whole: AuditResult) -> None:
    order = [v for v in judged_whole.verdicts if v.group == "clean-uniform" and v.promise == "total-order"]
    assert [(v.verdict, v.history) for v in order] == [("held", "h1")]


def test_the_dead_are_judged_too(verdicts: dict[str, dict[str, Verdict]]) -> None:
    witnesses = verdicts["skipped-C-dead"]["fifo"].violations
    assert {witness.member for witness in witnesses} == {"C@430"}
