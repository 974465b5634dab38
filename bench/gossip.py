"""Gossip groups from 10 to 1,000 members in virtual time: how far and how fast a gossip spreads, what a member receives
and what it misses, beside the formulas of the literature.

The layers are real PBCAST layers with their default settings, one view, and a network that loses each frame with a
probability (`tests/layers/gossip_world.py`).  Ten members send.  The figures do not depend on the machine.  Each line
is appended to bench/results/gossip.jsonl; the last lines become the plot and the table of the guide (`--draw` writes
them again).
The exit code is 1 if a group of 100 or more misses more than BOUNDS allow, or if the load grows more than GROWTH.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from math import exp, log
from typing import Any, Final

import common
from gossip_plot import drawn

sys.path.insert(0, str(common.HOME))

from pygroups.core.limits import Config
from pygroups.layers.pbcast import decide
from tests.layers.gossip_world import GossipWorld

SIZES: Final = (10, 30, 100, 300, 1_000)
LOSSES: Final = (0.1, 0.3)
BOUNDS: Final = {0.1: 0.001, 0.3: 0.01}  # the share of (message, member) missed PATIENCE seconds after the last message
GROWTH: Final = 1.5  # of the gossips and bytes of a member, from 100 to 1,000 members
PATIENCE: Final = 8
WORK: Final = 40_000  # members times seconds of one measurement: small groups are measured for longer
GUIDE: Final = common.HOME / "docs" / "guides" / "choosing-a-profile.md"
PLOT: Final = GUIDE.with_name("gossip.svg")
FIRST: Final = "<!-- figures of gossip: bench/gossip.py -->\n"
LAST: Final = "<!-- end of the figures of gossip -->"


def fanout(members: int, loss: float) -> float:
    """How many copies of a gossip that a member sends arrive, on average."""
    return decide.fanout(members - 1, members, Config().subset) * (1 - loss)


def rounds_of_theory(members: int, loss: float) -> float:
    """The rounds in which a rumor reaches all members: log_(F+1) n + ln n / F, up to a constant.

    B. Pittel, "On Spreading a Rumor", SIAM Journal on Applied Mathematics 47 (1987), for F = 1; P. Eugster et al.,
    "Epidemic Information Dissemination in Distributed Systems", IEEE Computer 37 (2004), for any fan-out.
    """
    copies = fanout(members, loss)
    return log(members) / log(copies + 1) + log(members) / copies


def unreached_of_theory(members: int, loss: float) -> float:
    """The share of the members that a rumor does not reach, if each sends it once, to F others: x = exp(-F (1 - x)).

    A.-M. Kermarrec, L. Massoulie, A. J. Ganesh, "Probabilistic Reliable Dissemination in Large-Scale Systems", IEEE
    Transactions on Parallel and Distributed Systems 14 (2003).
    """
    share, copies = 0.0, fanout(members, loss)
    for _ in range(200):
        share = exp(-copies * (1 - share))
    return share


def measured(members: int, loss: float) -> dict[str, Any]:
    """One group: ten members send two messages a second each for a while, then none for PATIENCE seconds."""
    seconds = max(30, min(WORK // members, 400))
    world = GossipWorld(members, loss, seed=members)
    world.age()
    before = world.received()
    world.send(2 * seconds, 10, seconds)
    gossips, size = world.received().rates(before, members, seconds)
    missed = {}
    for after in range(PATIENCE + 1):
        missed[after] = world.share_missed()
        world.run(1)
    over = [hops for hops in world.hops.values() if len(hops) > members // 4]
    return {
        "members": members,
        "loss": loss,
        "virtual_s": seconds,
        "messages": 2 * seconds,
        "gossips": len(world.hops),
        "gossips_that_spread": len(over),
        "rounds": round(statistics.mean([max(hops.values()) for hops in over]), 2),
        "rounds_of_theory": round(rounds_of_theory(members, loss), 2),
        "unreached": round(1 - statistics.mean([len(hops) / members for hops in over]), 5),
        "unreached_of_theory": round(unreached_of_theory(members, loss), 5),
        "gossips_per_member_s": round(gossips, 3),
        "bytes_per_member_s": round(size, 1),
        "missed_after_s": {after: round(share, 6) for after, share in missed.items()},
        "given_up": sum([node.missed for node in world.nodes]),
    }


def faults_of(rows: dict[tuple[int, float], dict[str, Any]]) -> list[str]:
    """What is worse than the bounds."""
    faults = [
        f"{members} members at {loss:.0%} loss miss {row['missed_after_s'][PATIENCE]:.3%}"
        for (members, loss), row in rows.items()
        if members >= 100 and row["missed_after_s"][PATIENCE] >= BOUNDS[loss]
    ]
    for loss in LOSSES:
        small, large = rows.get((100, loss)), rows.get((1_000, loss))
        if small is None or large is None:
            continue
        for what in ("gossips_per_member_s", "bytes_per_member_s"):
            if large[what] > GROWTH * small[what]:
                faults.append(f"{what} at {loss:.0%} loss: {large[what]} among 1,000 members, {small[what]} among 100")
    return faults


def table(rows: list[dict[str, Any]]) -> str:
    """The figures of the guide, as Markdown."""
    head = "| members | lost frames | gossips a second | bytes a second | missed after 1 s | after 4 s | after 8 s |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in rows:
        missed = [f"{row['missed_after_s'][str(after)]:.3%}".replace("%", " %") for after in (1, 4, 8)]
        figures = (f"{row['gossips_per_member_s']:.1f}", f"{row['bytes_per_member_s']:,.0f}", *missed)
        lines.append(" | ".join([f"| {row['members']:,}", f"{row['loss']:.0%}".replace("%", " %"), *figures]) + " |")
    return "\n".join(lines) + "\n"


def into_the_guide(rows: list[dict[str, Any]]) -> None:
    """Write the plot, and the table into the guide."""
    PLOT.write_text(drawn(rows))
    before, _, rest = GUIDE.read_text().partition(FIRST)
    _, _, after = rest.partition(LAST)
    GUIDE.write_text(before + FIRST + table(rows) + LAST + after)


def last_rows() -> list[dict[str, Any]]:
    """The last line of each group."""
    lines = (common.RESULTS / "gossip.jsonl").read_text().splitlines()
    found = {(row["members"], row["loss"]): row for row in map(json.loads, lines)}
    return [found[key] for key in sorted(found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", action="store_true", help="draw the last results again, and measure nothing")
    parser.add_argument("--members", type=int, nargs="*", default=SIZES, help="the sizes of the groups")
    options = parser.parse_args()
    faults: list[str] = []
    if not options.draw:
        rows = {}
        for members in options.members:
            for loss in LOSSES:
                result = common.Result("gossip")
                row = rows[members, loss] = measured(members, loss)
                result.write(**row)
        faults = faults_of(rows)
    into_the_guide(last_rows())
    print("\n".join(faults) or f"within all bounds; the plot is {PLOT.relative_to(common.HOME)}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
