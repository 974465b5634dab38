"""All tests of the running checks with planted histories, one after the other, for changed checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import partial
from typing import Final

import pytest

from tests.sim import (
    test_promises,
    test_promises_causal,
    test_promises_journals,
    test_promises_layers,
    test_promises_membership,
    test_promises_pace,
    test_promises_planted,
    test_promises_progress,
)

LARGE: Final = ("cut-block-", "swapped-at-an-edge-", "skipped-at-", "postponed-past-")
"""Planted histories of more than a block of messages: they take most of the time, and hardly a check needs them."""


def failures(first: Set[str] = frozenset()) -> Iterator[str]:
    """The names of the histories that are judged otherwise than they should.  The histories that break one of the
    promises in `first` are judged first."""
    for name, test in sorted(_tests(), key=lambda named: first.isdisjoint(_breaks(named[0]))):
        try:
            test()
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 (a check that falls has failed too)
            yield name


def _breaks(name: str) -> Set[str]:
    """The promises that the history with this name breaks.  Other names begin with the promise."""
    planted = test_promises_planted.ALL.get(name)
    return {name.partition(":")[0]} if planted is None else planted.breaks


def _tests() -> Iterator[tuple[str, Callable[[], None]]]:
    judge = test_promises_planted.test_a_planted_fault_breaks_what_it_breaks_and_nothing_else
    large = [planted for planted in test_promises_planted.PLANTED if planted.group.startswith(LARGE)]
    for planted in test_promises_planted.PLANTED:
        if planted not in large:
            yield planted.group, partial(judge, planted)
    for promise, history in test_promises.PLANTED:
        name = f"{promise}: " + "; ".join(history.strip().splitlines()[-2:])
        yield name, partial(test_promises.test_a_planted_fault_is_found, promise, history)
    for name in test_promises.GOOD:
        yield name, partial(test_promises.test_what_is_good_holds, name, "total")
    for name in test_promises_causal.GOOD:
        yield f"causal: {name}", partial(test_promises_causal.test_what_is_good_holds, name)
    for name in test_promises_causal.PLANTED:
        yield f"causal: {name}", partial(test_promises_causal.test_an_effect_before_its_cause_is_found, name)
    for name in test_promises_progress.GOOD:
        yield f"progress: {name}", partial(test_promises_progress.test_what_is_good_holds, name, "total")
    for name in test_promises_progress.PLANTED:
        yield f"progress: {name}", partial(test_promises_progress.test_what_hinders_is_found, name)
    for name in test_promises_progress.JOINS:
        yield f"join-in-time: {name}", partial(test_promises_progress.test_a_lone_join_is_timed, name)
    for name, story in test_promises_progress.MERGES.items():
        yield f"merge-in-time: {name}", partial(test_promises_progress.test_a_merge_is_timed, *story)
    for name in test_promises_membership.GOOD:
        yield f"checks-membership: {name}", partial(test_promises_membership.test_what_is_good_holds, name)
    for name in test_promises_membership.PLANTED:
        yield f"checks-membership: {name}", partial(test_promises_membership.test_a_planted_fault_is_found, name)
    yield "views-in-order", test_promises_layers.test_each_layer_gets_each_view_once_and_in_order
    for name, seen in test_promises_layers.PLANTED.items():
        yield f"views-in-order: {name}", partial(test_promises_layers.test_a_layer_that_gets_other_views_is_found, seen)
    for few in test_promises_progress.FEW:
        yield f"few-views: {few}", partial(test_promises_progress.test_few_views_are_right, *few)
    for many in test_promises_progress.MANY:
        yield (
            f"few-views: {many}",
            partial(test_promises_progress.test_many_views_while_nothing_changes_are_found, *many),
        )
    for name in test_promises_pace.GOOD:
        yield f"request-pace: {name}", partial(test_promises_pace.test_what_is_good_holds, name)
    for name in test_promises_pace.PLANTED:
        yield f"request-pace: {name}", partial(test_promises_pace.test_requests_without_back_off_are_found, name)
    for told in ((1, 3, "receiver", 3), (3, 1, "receiver", 3), (3, 2, "sender", 4)):
        yield f"journal-first: {told}", partial(_unwritten, *told)
    for planted in large:
        yield planted.group, partial(judge, planted)


def _unwritten(first: int, count: int, whose: str, number: int) -> None:
    try:
        test_promises_journals.test_what_one_of_them_has_not_written_is_not(first, count, whose, number)
    finally:
        test_promises_journals.JournalFirst.around.journals = False
