"""How a member is suspected: each cause, and what takes it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pygroups.core.address import Address
from pygroups.layers.gms.decisions.suspicion import UNANSWERED_MAX, Suspicion, Suspicions

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
SILENT, ENDED, ELSEWHERE, UNHEARD = Suspicion.SILENT, Suspicion.ENDED, Suspicion.ELSEWHERE, Suspicion.UNHEARD
Change = Callable[[Suspicions], object]

CAUSES: dict[str, Change] = {
    "silent": lambda known: known.suspect(B, SILENT),
    "ended": lambda known: known.suspect(B, ENDED),
    "elsewhere": lambda known: known.elsewhere(B),
    "unanswering": lambda known: known.left_unanswered(B, UNANSWERED_MAX),
    "apart": lambda known: known.apart.update({B: None}),
    "gives way": lambda known: known.accuse(B, {B: UNHEARD}),
}
ENDS: dict[str, Change] = {
    "heard": lambda known: known.heard(B),
    "answers Ready": lambda known: known.answered(B),
    "accuses itself no more": lambda known: known.accuse(B, {}),
    "a new view": lambda known: known.keep((A, B, C)),
}
TAKEN_BACK = {
    "silent": ("heard", "answers Ready"),
    "ended": ("heard", "answers Ready"),
    "elsewhere": (),
    "unanswering": ("answers Ready", "a new view"),
    "apart": ("answers Ready", "a new view"),
    "gives way": ("accuses itself no more", "a new view"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_suspicion_is_taken_back_by_its_own_end_and_by_no_other(cause: str, end: str) -> None:
    known = Suspicions()
    CAUSES[cause](known)
    assert B in known
    ENDS[end](known)
    assert (B in known) is (end not in TAKEN_BACK[cause])


@pytest.mark.parametrize(
    ("first", "second", "then"),
    [
        (SILENT, ENDED, ENDED),
        (ENDED, SILENT, ENDED),
        (ELSEWHERE, SILENT, ELSEWHERE),
        (ELSEWHERE, ENDED, ELSEWHERE),
        (UNHEARD, SILENT, SILENT),
    ],
)
def test_a_proof_is_not_forgotten_and_elsewhere_is_for_good(
    first: Suspicion, second: Suspicion, then: Suspicion
) -> None:
    known = Suspicions()
    known.known[B] = first
    known.suspect(B, second)
    assert known.known == {B: then}


def test_only_a_member_that_has_ended_or_is_elsewhere_frees_its_name() -> None:
    known = Suspicions()
    known.known = {A: SILENT, B: ENDED, C: ELSEWHERE, D: UNHEARD}
    assert [known.is_over(member) for member in (A, B, C, D)] == [False, True, True, False]
    assert known.own((A, B, C, D)) == {A: SILENT, B: ENDED, D: UNHEARD}
    assert known.own((A, C)) == {A: SILENT}, "of these members alone"


def test_what_is_new_in_an_accusation() -> None:
    known = Suspicions()
    assert known.accuse(A, {B: SILENT}) == {B: SILENT}
    assert known.accuse(A, {B: SILENT, C: ENDED}) == {C: ENDED}
    assert known.accuse(A, {B: ENDED, C: SILENT}) == {B: ENDED}
    assert known.accuse(A, {}) == {}
    assert known.accuse(A, {B: SILENT}) == {B: SILENT}, "it was taken back"


def test_a_proof_is_unconfirmed_until_another_member_suspects_too() -> None:
    known = Suspicions()
    known.suspect(B, ENDED)
    assert known.is_unconfirmed(B)
    known.accuse(C, {B: SILENT})
    assert not known.is_unconfirmed(B)


def test_a_leader_is_unheard_when_most_that_are_not_suspected_accuse_it() -> None:
    known = Suspicions()
    known.accuse(B, {A: SILENT})
    assert not known.is_unheard(A, (A, B, C))
    known.accuse(C, {A: SILENT})
    assert known.is_unheard(A, (A, B, C))
    assert not known.is_unheard(A, (A, B, C, D))
    known.suspect(D, SILENT)
    assert known.is_unheard(A, (A, B, C, D)), "D does not count"
