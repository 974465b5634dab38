"""Numbers to places on paper and to words: round ticks on linear and logarithmic axes, and units a person reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

US_PER_SECOND = 1_000_000
US_PER_MINUTE = 60 * US_PER_SECOND
US_PER_HOUR = 60 * US_PER_MINUTE
FEW_TICKS = 3
TIME_STEPS_US = tuple(
    step * unit
    for unit, steps in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (US_PER_SECOND, (1, 2, 5, 10, 15, 30)),
        (US_PER_MINUTE, (1, 2, 5, 10, 15, 30)),
        (US_PER_HOUR, (1, 2, 6, 12, 24, 48, 168)),
    )
    for step in steps
)


@dataclass(frozen=True)
class Axis:
    """A linear axis from `low` to `high`, with the values that get a label."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """The place of a value, from 0 at `low` to 1 at `high`; a value outside is put at the edge."""
        if self.high <= self.low:
            return 0.0
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis; `low` is above 0, values below it are put at the edge."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """The place of a value, from 0 at `low` to 1 at `high`."""
        if value <= self.low:
            return 0.0
        return min(1.0, math.log(value / self.low) / math.log(self.high / self.low))


def log_axis(values: Sequence[float]) -> LogAxis:
    """An axis between numbers that begin with 1, 2 or 5 and hold all positive values; long axes label decades only."""
    positive = [value for value in values if value > 0]
    if not positive:
        return LogAxis(1.0, 10.0, (1.0, 10.0))
    first, last = math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 1
    round_numbers = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    low = max(number for number in round_numbers if number <= min(positive))
    high = min(number for number in round_numbers if number >= max(positive) and number > low)
    inside = [number for number in round_numbers if low <= number <= high]
    decades = [number for number in inside if f"{number:e}".startswith("1.")]
    return LogAxis(low, high, tuple(decades if len(decades) >= FEW_TICKS else inside))


def time_axis(start_us: int, end_us: int, about: int = 6) -> Axis:
    """An axis of time; ticks are at round distances from `start_us`, which is the zero a reader sees."""
    span = max(1, end_us - start_us)
    longest = TIME_STEPS_US[-1]
    step = next((step for step in TIME_STEPS_US if span / step <= about), longest * math.ceil(span / longest / about))
    ticks = tuple(float(start_us + offset) for offset in range(0, span + 1, step))
    return Axis(float(start_us), float(start_us + span), ticks)


def significant(value: float, digits: int = 3, *, padded: bool = False) -> str:
    """A number with about `digits` significant digits, thousands separated; `padded` keeps zeros at the end."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text if padded or "." not in text else text.rstrip("0").rstrip(".")


def duration(microseconds: float, *, padded: bool = False) -> str:
    """A length of time in the unit that fits it: `840 µs`, `1.24 ms`, `12.3 s`, `2 min 5 s`.

    `padded` writes `1.30 ms` rather than `1.3 ms`, for columns of numbers.
    """
    size = abs(microseconds)
    if size < 1_000:
        return f"{significant(microseconds)} µs"
    if size < US_PER_SECOND:
        return f"{significant(microseconds / 1_000, padded=padded)} ms"
    if size < US_PER_MINUTE:
        return f"{significant(microseconds / US_PER_SECOND, padded=padded)} s"
    sign = "-" if microseconds < 0 else ""
    if size < US_PER_HOUR:
        return sign + _two_units(size, US_PER_MINUTE, "min", US_PER_SECOND, "s")
    return sign + _two_units(size, US_PER_HOUR, "h", US_PER_MINUTE, "min")


def _two_units(size: float, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(round(size / small), large // small)
    return f"{whole} {large_name} {rest} {small_name}" if rest else f"{whole} {large_name}"


def count(number: float) -> str:
    """A whole number with thousands separated."""
    return f"{round(number):,}"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: `1 crash`, `2 crashes`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def short(number: float) -> str:
    """A number for a narrow place: `12.4 k`, `3.1 M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{significant(number / size)} {letter}"
    return significant(number)


def size_in_bytes(number: float) -> str:
    """A size in decimal units: `640 B`, `1.2 kB`, `3.4 MB`."""
    return f"{short(number)}B" if abs(number) >= 1_000 else f"{significant(number)} B"


def since(start_us: int) -> Callable[[float], str]:
    """Words for a moment as time passed since `start_us`: the label of a time axis."""
    return lambda moment: "0" if moment == start_us else duration(moment - start_us)
