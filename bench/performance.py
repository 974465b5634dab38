"""The figures of docs/performance.md: total order among four real processes, beside the bare model of the same bytes.

Each figure is measured in turn with its neighbor, `--repeat` times, and the median by CPU is written, so that other
programs disturb both alike.  `--table` measures nothing, and writes the last figures into the page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections.abc import Sequence
from typing import Any, Final

import common  # first: it makes this tree the one that is measured
import model
from total_order import latency, throughput

sys.path.insert(0, str(common.HOME))

from bench.calls import count

PAGE: Final = common.HOME / "docs" / "performance.md"
TABLE: Final = re.compile(r"(<!-- figures: bench/performance.py -->\n).*?(<!-- end of the figures -->\n)", re.DOTALL)
MEMBERS: Final = 4
MODEL: Final = "bare model"
LOADS_MEASURED: Final = (("TCP", 100), (MODEL, 100), ("TCP", 1_000), (MODEL, 1_000), ("UDP", 1_000))


def measured(what: str, size: int, seconds: float) -> dict[str, Any]:
    """One load; `what` is a transport, or the model."""
    if what == MODEL:
        return model.measured(MEMBERS, size, seconds)
    return asyncio.run(throughput(MEMBERS, size, "batches", seconds, {}, transport=what.lower()))


def table(line: dict[str, Any]) -> str:
    """The figures of one measurement, and what the machine did meanwhile."""
    rows = ["| | messages a second | CPU seconds for a million deliveries |", "|---|---|---|"]
    for one in line["loads"]:
        rate, cpu = round(one["messages_per_s"], -3), one["cpu_s_per_million_deliveries"]
        rows.append(f"| {one['what']}, {one['size']:,} bytes | {rate:,} | {cpu:.2f} |")
    rows += ["", "| a lone message | |", "|---|---|"]
    rows += [f"| {name} | {value} |" for name, value in line["lone"].items()]
    where = f"commit {line['commit']}, {line['date'][:10]}, {line['cores']} cores, Python {line['python']}"
    load = f"load of the machine {line['load_before'][0]} before and {line['load_after'][0]} after"
    busy = line["load_before"][0] > line["cores"]
    shared = " Other programs shared the cores: rates and latencies are those of a busy machine." if busy else ""
    return "\n".join([*rows, "", f"Measured at {where}; {load}.{shared}", ""])


def measure(seconds: float, repeat: int) -> None:
    result = common.Result("performance")
    tries: dict[tuple[str, int], list[dict[str, Any]]] = {load: [] for load in LOADS_MEASURED}
    for _ in range(repeat):
        for load, found in tries.items():
            found.append(measured(*load, seconds))
    loads = []
    for (what, size), found in tries.items():
        found.sort(key=lambda one: float(one["cpu_s_per_million_deliveries"]))
        middle = found[len(found) // 2]
        names = ("messages_per_s", "cpu_s_per_million_deliveries")
        loads.append({"what": what, "size": size} | {name: middle[name] for name in names})
    times = [asyncio.run(latency(MEMBERS, 100, 200.0, seconds)) for _ in range(repeat)]
    lone = {
        "from the send to the sender's own delivery, p50": f"{statistics.median([t['p50_ms'] for t in times]):.2f} ms",
        "the same, p99": f"{statistics.median([t['p99_ms'] for t in times]):.2f} ms",
        "function calls in all members": round(count("lone").calls),
        "function calls of a run in a flood": round(count("flood").calls),
    }
    result.write(members=MEMBERS, loads=loads, lone=lone)


def last() -> dict[str, Any]:
    lines: Sequence[str] = (common.RESULTS / "performance.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=5.0, help="of each load")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--table", action="store_true", help="measure nothing, write the tables of the page")
    given = options.parse_args()
    if given.table:
        page, places = TABLE.subn(lambda found: found[1] + table(last()) + found[2], PAGE.read_text())
        assert places == 1, "the page has no place for the figures"
        PAGE.write_text(page)
    else:
        measure(given.seconds, given.repeat)


if __name__ == "__main__":
    main()
