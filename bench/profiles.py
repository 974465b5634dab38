"""The profiles side by side, among real processes on loopback TCP: throughput, latency and CPU of fifo, total and
uniform at 2, 4 and 8 members.  `--table` writes the newest figures into docs/guides/choosing-a-profile.md.

Throughput and CPU are those of bench/total_order.py: every member sends as fast as its window allows.  Latency is that
of one sender at a low rate, from the time at which it was to send to the delivery at the slowest member.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common  # first: it makes this tree the one that is measured
from total_order import latency, throughput

GUIDE = common.HOME / "docs" / "guides" / "choosing-a-profile.md"
TABLE = re.compile(r"(<!-- figures: bench/profiles.py -->\n).*?(<!-- end of the figures -->\n)", re.DOTALL)
NONE = "No figures yet: `.venv/bin/python bench/profiles.py` measures them, on an idle machine.\n"
PROFILES, MEMBERS = ("fifo", "total", "uniform"), (2, 4, 8)


async def measure(profile: str, members: int, seconds: float) -> dict[str, Any]:
    load = await throughput(members, 100, "batches", seconds, {}, profile)
    alone = await latency(members, 100, 200.0, seconds, profile)
    names = ("messages_per_s", "cpu_s_per_million_deliveries", "cpu_share_of_others")
    return {name: load[name] for name in names} | {name: alone[name] for name in ("p50_ms", "p99_ms")}


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The last figures of each profile and size, as a table."""
    last = {(line["members"], line["profile"]): line for line in lines}
    if not last:
        return NONE
    rows = ["| members | profile | messages a second | p50 | CPU for a delivery |", "|---|---|---|---|---|"]
    for members, profile in sorted(last, key=lambda key: (key[0], PROFILES.index(key[1]))):
        one = last[members, profile]
        rows.append(
            f"| {members} | `{profile}` | {round(one['messages_per_s'], -3):,} | {one['p50_ms']:.1f} ms | "
            f"{one['cpu_s_per_million_deliveries']:.2f} us |"
        )
    return "\n".join(rows) + "\n"


def results(path: Path = common.RESULTS / "profiles.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def with_table(guide: str, lines: Sequence[dict[str, Any]]) -> str:
    """The guide with this table in its place."""
    text, count = TABLE.subn(lambda found: found[1] + table(lines) + found[2], guide)
    assert count == 1, "the guide has no place for the figures"
    return text


async def run(options: argparse.Namespace) -> None:
    for members in options.members:
        for profile in options.profiles:
            result = common.Result("profiles")
            tries = [await measure(profile, members, options.seconds) for _ in range(options.repeat)]
            tries.sort(key=lambda one: one["cpu_s_per_million_deliveries"])
            result.write(profile=profile, members=members, size=100, **tries[len(tries) // 2])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--profiles", nargs="*", choices=PROFILES, default=PROFILES)
    options.add_argument("--members", type=int, nargs="*", default=MEMBERS)
    options.add_argument("--seconds", type=float, default=5.0, help="of each load")
    options.add_argument("--repeat", type=int, default=3, help="times each measurement; the median is written")
    options.add_argument("--table", action="store_true", help="measure nothing, write the table of the guide")
    given = options.parse_args()
    if given.table:
        GUIDE.write_text(with_table(GUIDE.read_text(), results()))
    else:
        asyncio.run(run(given))


if __name__ == "__main__":
    main()
