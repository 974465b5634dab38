"""The profiles side by side, among real processes on loopback TCP: throughput, latency and CPU of fifo, total and
uniform at 2, 4 and 8 members; with `--udp`, of total and total1999 over UDP.  `--table` writes the newest figures into
docs/guides/choosing-a-profile.md, beside the bytes over UDP that bench/loss.py measured.

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
TABLE_UDP = re.compile(
    r"(<!-- figures over UDP: bench/profiles.py -->\n).*?(<!-- end of these figures -->\n)", re.DOTALL
)
NONE = "No figures yet: `.venv/bin/python bench/profiles.py` measures them, on an idle machine.\n"
NONE_UDP = (
    "No figures yet: `.venv/bin/python bench/profiles.py --udp` and, with root, `.venv/bin/python bench/loss.py "
    "--profiles total total1999 --members 4` measure them, on an idle machine.\n"
)
PROFILES, MEMBERS = ("fifo", "total", "uniform"), (2, 4, 8)
OVER_UDP, MEMBERS_UDP = ("total", "total1999"), 4


async def measure(profile: str, members: int, seconds: float, transport: str) -> dict[str, Any]:
    load = await throughput(members, 100, "batches", seconds, {}, profile, transport)
    alone = await latency(members, 100, 200.0, seconds, profile, transport)
    names = ("messages_per_s", "cpu_s_per_million_deliveries", "cpu_share_of_others")
    return {name: load[name] for name in names} | {name: alone[name] for name in ("p50_ms", "p99_ms")}


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The last figures of each profile and size, as a table."""
    last = {(line["members"], line["profile"]): line for line in lines if line.get("transport", "tcp") == "tcp"}
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


def table_udp(lines: Sequence[dict[str, Any]], losses: Sequence[dict[str, Any]]) -> str:
    """The last figures over UDP, and the bytes for each message of 100 bytes by percent of lost packets; "-" for what
    was not measured."""
    of_udp = [line for line in lines if line.get("transport") == "udp" and line["members"] == MEMBERS_UDP]
    last = {line["profile"]: line for line in of_udp}
    played = [line for line in losses if line.get("members") == MEMBERS_UDP and line.get("transport") == "udp"]
    sent = {(line["profile"], line.get("loss_percent")): line for line in played if "datagram" not in line}
    if not any(profile in last or (profile, 0.0) in sent for profile in OVER_UDP):
        return NONE_UDP
    rows = ["| profile | messages a second | p50 | CPU for a delivery | bytes for a message: no loss | 1 % | 10 % |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for profile in OVER_UDP:
        one, bytes_of = last.get(profile), [sent.get((profile, percent)) for percent in (0.0, 1.0, 10.0)]
        row = f"| `{profile}` |" + " - |" * 3
        if one is not None:
            row = f"| `{profile}` | {round(one['messages_per_s'], -3):,} | {one['p50_ms']:.1f} ms | "
            row += f"{one['cpu_s_per_million_deliveries']:.2f} us |"
        for line in bytes_of:
            count = None if line is None else line["bytes"] / line["messages_each"] / line["members"]
            row += " - |" if count is None else f" {count:.0f} |"
        rows.append(row)
    return "\n".join(rows) + "\n"


def results(path: Path = common.RESULTS / "profiles.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def with_table(guide: str, lines: Sequence[dict[str, Any]]) -> str:
    """The guide with these tables in their places."""
    losses = results(common.RESULTS / "loss.jsonl")
    for place, new in ((TABLE, table(lines)), (TABLE_UDP, table_udp(lines, losses))):
        guide, count = place.subn(lambda found, new=new: found[1] + new + found[2], guide)  # type: ignore[misc]
        assert count == 1, "the guide has no place for the figures"
    return guide


async def run(options: argparse.Namespace) -> None:
    transport = {"transport": "udp"} if options.udp else {}
    for members in (MEMBERS_UDP,) if options.udp else options.members:
        for profile in OVER_UDP if options.udp else options.profiles:
            result = common.Result("profiles")
            over = transport.get("transport", "tcp")
            tries = [await measure(profile, members, options.seconds, over) for _ in range(options.repeat)]
            tries.sort(key=lambda one: one["cpu_s_per_million_deliveries"])
            result.write(profile=profile, members=members, size=100, **transport, **tries[len(tries) // 2])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--profiles", nargs="*", choices=PROFILES, default=PROFILES)
    options.add_argument("--members", type=int, nargs="*", default=MEMBERS)
    options.add_argument("--udp", action="store_true", help="total and total1999 over UDP, among 4 members")
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
