"""The binomial test against exact arithmetic: in the audit, and in the running check, which computes it otherwise."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, isclose, log

import pytest

from pygroups.pipeline.binomial import log_at_least, share_at_least
from pygroups.sim.promises.epsilon import is_above, log_tail

CASES = [
    (facts, misses, ppm)
    for facts in (1, 2, 7, 60, 400)
    for ppm in (1, 1_000, 10_000, 300_000, 999_999)
    for misses in {1, facts // 50 + 1, facts // 3 + 1, facts}
    if misses * 1_000_000 > facts * ppm
]


def exactly(misses: int, facts: int, ppm: int) -> Fraction:
    share = Fraction(ppm, 1_000_000)
    return sum(
        (comb(facts, i) * share**i * (1 - share) ** (facts - i) for i in range(misses, facts + 1)), start=Fraction(0)
    )


def log_of(value: Fraction) -> float:
    """Also of a fraction that no float holds."""
    return log(value.numerator) - log(value.denominator)


@pytest.mark.parametrize(("facts", "misses", "ppm"), CASES)
def test_both_are_exact(facts: int, misses: int, ppm: int) -> None:
    expected = log_of(exactly(misses, facts, ppm))
    for found in (log_at_least(misses, facts, ppm / 1e6), log_tail(misses, facts, ppm / 1e6)):
        assert isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(("facts", "misses", "ppm"), [(60, 2, 300_000), (60, 20, 300_000), (400, 100, 300_000)])
def test_fewer_misses_than_expected(facts: int, misses: int, ppm: int) -> None:
    expected = log_of(exactly(misses, facts, ppm))
    assert isclose(log_at_least(misses, facts, ppm / 1e6), expected, rel_tol=1e-6, abs_tol=1e-9)


def test_the_two_agree_for_many_facts() -> None:
    for facts, misses in ((1_000_000, 10_900), (10_000_000, 101_000), (50_000, 50_000), (10**8, 1_000_300)):
        assert isclose(log_at_least(misses, facts, 0.01), log_tail(misses, facts, 0.01), rel_tol=1e-6)


def test_a_share_of_one_is_never_above_and_one_of_zero_always() -> None:
    assert log_at_least(5, 5, 1.0) == log_tail(5, 5, 1.0) == 0.0
    assert log_at_least(0, 5, 0.2) == 0.0
    assert log_at_least(1, 5, 0.0) == -float("inf")
    assert not is_above(5, 5, 1.0)


def test_the_lower_limit_of_a_share_is_that_of_the_published_tables() -> None:
    """3 of 10 at 97.5 %, one side: 0.0667 (Clopper and Pearson; R: binom.test(3, 10)$conf.int)."""
    assert isclose(share_at_least(3, 10, 0.025), 0.06673951, rel_tol=1e-6)
    assert isclose(exp(log_at_least(3, 10, share_at_least(3, 10, 0.025))), 0.025, rel_tol=1e-6)
    assert isclose(share_at_least(10, 10, 0.05), 0.05**0.1, rel_tol=1e-6)


def test_a_share_is_above_only_if_chance_hardly_explains_it() -> None:
    assert not is_above(12, 1_200, 0.01) and not is_above(30, 1_200, 0.01)
    assert is_above(60, 1_200, 0.01)
    assert not is_above(4, 4, 0.01) and is_above(5, 5, 0.01), "0.01 ** 5 is 1e-10"
