"""Merges of two views while one process is far from all others, in virtual time (docs/decisions/0126).

A and B are one view, C and D are another one.  One of A, C and D is so far away that a round trip takes longer than the
short timeouts.  Counted are the worlds in which the merged view did not come in time, and those in which a member
installed more views than the merged one.
"""

from __future__ import annotations

import argparse
import sys

import common

sys.path.insert(0, str(common.HOME))

from pygroups.core.limits import SECOND, Config
from pygroups.sim.promises.progress import bound_with_merges
from pygroups.sim.scenarios.group import NotYet
from tests.merging import QUICK, mapped, whole

VIEWS = {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C D"), "D": (7, "C D")}


def merged_after(far: str, delay: float, seed: int) -> tuple[float | None, bool]:
    """The seconds until one view, None if it did not come in time; and whether a member installed further views."""
    with mapped(VIEWS, "fifo", seed=seed, heartbeat_timeout=3 * SECOND) as group:
        links = [link for other in VIEWS if other != far for link in ((far, other), (other, far))]
        group.world.network.move(links, int(delay * SECOND))
        bound = bound_with_merges(Config(**QUICK), int(2 * delay * SECOND)) / SECOND
        try:
            group.until(lambda: whole(group), bound, step=0.01)
        except NotYet:
            return None, False
        return group.world.agenda.now / SECOND, any(len(member.views) > 2 for member in group.members)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--seeds", type=int, default=30, help="worlds for each far process and distance")
    seeds = range(arguments.parse_args().seeds)
    found = [merged_after(far, delay, seed) for far in "ACD" for delay in (0.25, 0.5, 1.0) for seed in seeds]
    times = [seconds for seconds, _ in found if seconds is not None]
    more = sum(further for _, further in found)
    print(f"{len(found)} worlds: {len(found) - len(times)} without a merge in time, {more} with further views")
    print(f"{sum(times) / len(times):.1f} s to the merge on average, {max(times):.1f} s at most")


if __name__ == "__main__":
    main()
