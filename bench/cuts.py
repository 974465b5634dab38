"""The views that members install while links stay cut, in virtual time (docs/decisions/0107).

A pattern is a set of links that are cut, in both directions or in one.  Each pattern is cut in a group under load, with
short timeouts, for three bounds of `progress`; then it heals, and the scenario checks that one view follows.  Counted
are the views of each member in the first bound, and after it.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import common

sys.path.insert(0, str(common.HOME))

from pygroups.core.limits import SECOND, Config
from pygroups.sim import Check, scenario
from pygroups.sim.promises.facts import Viewed
from pygroups.sim.promises.progress import bound_with_merges
from tests.merging import QUICK

SHORT: Final = {**QUICK, "connection_age": 3 * SECOND}
BOUND: Final = bound_with_merges(Config(**SHORT)) / SECOND
NAMES: Final = "ABCDE"
Link = tuple[str, str]


class Case(NamedTuple):
    """A size of the group, whether cuts are of one direction, and the number of patterns that are drawn, 0 for all."""

    members: int
    oneway: bool
    drawn: int


CASES: Final = (Case(3, True, 0), Case(4, False, 0), Case(4, True, 60), Case(5, False, 60), Case(5, True, 60))


class Views(Check):
    """The time of each view of each member."""

    promises = ("counted",)

    def __init__(self) -> None:
        self.times: list[tuple[str, int]] = []

    def viewed(self, view: Viewed) -> None:
        self.times.append((view.member.name, view.at))


def patterns(case: Case, rng: random.Random) -> Iterator[list[Link]]:
    """The sets of links that are cut."""
    names = NAMES[: case.members]
    links = [*(itertools.permutations(names, 2) if case.oneway else itertools.combinations(names, 2))]
    every = 2 ** len(links)
    chosen = range(1, every) if not case.drawn else sorted(rng.sample(range(1, every), case.drawn))
    for bits in chosen:
        yield [link for place, link in enumerate(links) if bits >> place & 1]


def play(names: str, cuts: list[Link], *, oneway: bool, profile: str) -> tuple[int, int, float]:
    """The most views of a member in the first bound and after it, and the seconds from the cut to the last view."""
    views = Views()
    with scenario(list(names), profile=profile, checks=[views], **SHORT) as group:
        for name in names:
            group[name].sends(int(3 * BOUND / 0.05), every=0.05)
        for one, other in cuts:
            group.cut(one, other, way="out" if oneway else "both")
        began = group.world.agenda.now
        group.after(3 * BOUND)
        end = began + int(BOUND * SECOND)
        first = [sum(began <= at < end for name, at in views.times if name == one) for one in names]
        later = [sum(at >= end for name, at in views.times if name == one) for one in names]
        last = max((at for _, at in views.times if at >= began), default=began)
        group.heal()
    return max(first), max(later), round((last - began) / SECOND, 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seed", type=int, default=1, help="of the patterns that are drawn")
    options.add_argument("--profile", choices=["total", "fifo"], default="total")
    options.add_argument("--most", type=int, default=0, help="patterns of each case at most; 0 for all")
    given = options.parse_args()
    for case in CASES:
        result = common.Result("cuts")
        rng = random.Random(given.seed)
        if given.most:
            case = case._replace(drawn=given.most if not case.drawn else min(given.most, case.drawn))
        names = NAMES[: case.members]
        found = [play(names, cuts, oneway=case.oneway, profile=given.profile) for cuts in patterns(case, rng)]
        worst: dict[str, Any] = {
            "first_bound_most_views": max(one[0] for one in found),
            "later_most_views": max(one[1] for one in found),
            "last_view_s": max(one[2] for one in found),
        }
        result.write(
            members=case.members,
            directions="one" if case.oneway else "both",
            patterns=len(found),
            profile=given.profile,
            bound_s=BOUND,
            **worst,
        )


if __name__ == "__main__":
    main()
