"""request-pace: a member requests the same missing run ever more rarely."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Viewed

PERIODS: Final = 50  # requests in so many periods are counted
SPARE: Final = 3  # requests beyond those that the pauses allow


@lru_cache
def requests_max(period: int, longest: int) -> int:
    """The most requests for one run within PERIODS: pauses begin at `period`, double up to `longest`, and chance
    shortens each by up to a quarter."""
    count, at, pause = 1, 0, period
    while (at := at + max(period, pause - pause // 4)) < PERIODS * period:
        count, pause = count + 1, max(period, min(2 * pause, longest))
    return count + SPARE


class RequestPace(Check):
    """A member repeats the request for the first run that it lacks after pauses that double, until the run arrives.

    A request with a lower run shows that an earlier one was not for the first missing run; these repeat while runs
    arrive.  Each step of a view change begins anew, because the flush fetches at once.
    """

    promises = ("request-pace",)

    def __init__(self) -> None:
        self.asked: dict[Address, dict[Address, dict[int, list[int]]]] = {}  # per stream and run, the last times
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"request-pace": self.judged}

    def runs_requested(self, member: Address, stream: Address, low: int) -> None:
        now, asked, config = self.around.clock(), self.asked.setdefault(member, {}), self.around.config
        most = requests_max(config.nakack_period, config.nakack_backoff_max)
        times = [*asked.get(stream, {}).get(low, ())[-most:], now]
        asked[stream] = {run: at for run, at in asked.get(stream, {}).items() if run < low} | {low: times}
        self.judged += 1
        if len(times) > most and now - times[0] < PERIODS * config.nakack_period:
            detail = f"run {low} of {stream} was requested {len(times)} times in {now - times[0]} us"
            self.broken("request-pace", detail, member=member, other=stream)

    def accepts(self, member: Address, fields: dict[str, Any]) -> None:
        self.asked.pop(member, None)

    def merge_accepted(self, member: Address, view: ViewId, merged: ViewId) -> None:
        self.asked.pop(member, None)

    def viewed(self, view: Viewed) -> None:
        self.asked.pop(view.member, None)
