"""The exact binomial test of a share, without a library of statistics.

C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26 (1934), 404-413.  The tail of the binomial distribution is the regularized incomplete beta function:
NIST Digital Library of Mathematical Functions, 8.17.5, and its continued fraction 8.17.22.
"""

from math import exp, lgamma, log, log1p
from typing import Final

_TINY: Final = 1e-300
_STEPS: Final = 10_000


def log_at_least(misses: int, facts: int, share: float) -> float:
    """The natural logarithm of the probability that at least `misses` of `facts` independent facts are missed, if each
    is missed with the probability `share`, from 0 to 1.  -inf if it is impossible."""
    if misses <= 0 or share >= 1:
        return 0.0
    if share <= 0:
        return -float("inf")
    a, b = float(misses), float(facts - misses + 1)
    front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(share) + b * log1p(-share)
    if share > (a + 1) / (a + b + 2):  # there the other tail is the one whose fraction converges
        return log1p(-min(1.0, exp(front - log(b) + log(_fraction(b, a, 1 - share)))))
    return min(0.0, front - log(a) + log(_fraction(a, b, share)))


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        before = value
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + factor * d)
            c = _not_zero(1 + factor / c)
            value *= c * d
        if abs(value - before) <= 1e-15 * abs(value):
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def share_at_least(misses: int, facts: int, level: float) -> float:
    """The lower limit of Clopper and Pearson: with every smaller share so many misses, or more, have a probability
    below `level`."""
    low, high = 0.0, misses / facts
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_at_least(misses, facts, middle) < log(level) else (low, middle)
    return low
