"""`python -m tests.fuzz`: fuzz all decoders, and `receive` of stacks in the middle of what groups do.

Each target has a process of its own.  A line with the counts goes to bench/results/fuzz.jsonl.  The exit code is 1 if
anything raised that may not, took too long, or let a table grow above its limit; then each way to fail is printed with
its inputs.  `--keep` puts the inputs that reached new code into tests/fuzz/corpus, at most CORPUS_MAX of each target.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.fuzz.seeds import keep, kept
from tests.fuzz.worker import Order
from tests.wire.fuzz import commit

RESULTS: Final = Path(__file__).parents[2] / "bench" / "results" / "fuzz.jsonl"
SHARES: Final = {
    "packet": 40,
    "frame": 20,
    "datagram": 17,
    "connection": 12,
    "command": 5,
    "text": 5,
    "journal": 1,
    "receive": 0,
}
"""Of a hundred inputs for the decoders, those of each."""
SECONDS: Final = dict.fromkeys(SHARES, 8) | {"receive": 44}
"""Of a hundred seconds, those of each target."""
CORPUS_MAX: Final = 60
CORPUS_BYTES: Final = 600  # of one kept input
STARTING: Final = 300.0  # seconds for a worker to start on a busy machine


def fuzzed(order: Order, keeping: bool) -> dict[str, Any]:
    """The report of a worker.  Raises RuntimeError if the worker ends without one."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, report = Path(folder) / "corpus", Path(folder) / "report.json"
        corpus.mkdir()
        order = order._replace(corpus=str(corpus), report=str(report))
        command = [sys.executable, "-m", "tests.fuzz.worker", json.dumps(order._asdict())]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=STARTING + 2 * order.seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{order.target}: an input hangs; seed {order.seed}") from None
        if not report.exists():
            raise RuntimeError(
                f"{order.target}: the worker ended with {done.returncode}: {done.stderr.decode()[-3000:]}"
            )
        if keeping:
            found = [path.read_bytes() for path in sorted(corpus.iterdir()) if not path.name.startswith("seed")]
            small = sorted([data for data in found if 0 < len(data) <= CORPUS_BYTES], key=len)
            keep(order.target, [*kept(order.target), *small[:: max(1, len(small) // CORPUS_MAX)]][:CORPUS_MAX])
        return dict(json.loads(report.read_text()))


def told(report: dict[str, Any]) -> None:
    """Print what a target gave."""
    guide = "guided by coverage" if report["guided"] else "without a guide (atheris is not installed)"
    print(f"{report['target']:<11}{report['inputs']:>12,} inputs in {report['seconds']:,} s, {guide}", flush=True)
    for where, fault in report["faults"].items():
        print(
            f"  {fault['times']} times: {where}\n{fault['story']}  play {fault['play']}, inputs: {fault['inputs'][-3:]}"
        )


def main() -> int:
    """0 if nothing failed."""
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n\n")[0])
    asked.add_argument("--seconds", type=float, default=1e6, help="for all targets together")
    asked.add_argument("--decoders", type=int, default=1 << 40, help="inputs for all decoders together")
    asked.add_argument("--receive", type=int, default=1 << 40, help="inputs for stacks")
    asked.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    asked.add_argument("--target", choices=[*SHARES], action="append")
    asked.add_argument("--keep", action="store_true", help="keep inputs that reached new code")
    chosen = asked.parse_args()
    begun, reports = time.monotonic(), []
    for target in chosen.target or SHARES:
        inputs = chosen.receive if target == "receive" else chosen.decoders * SHARES[target] // 100
        if inputs:
            seconds = chosen.seconds * SECONDS[target] / sum(SECONDS[one] for one in chosen.target or SHARES)
            reports.append(fuzzed(Order(target, inputs, seconds, chosen.seed, "", ""), chosen.keep))
            told(reports[-1])
    result = {
        "bench": "fuzz",
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - begun, 1),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "seed": chosen.seed,
        "decoded": sum(one["inputs"] for one in reports if one["target"] != "receive"),
        "received_by_stacks": sum(one["inputs"] for one in reports if one["target"] == "receive"),
        "targets": {
            one["target"]: {key: one[key] for key in one if key not in ("target", "faults")} for one in reports
        },
        "faults": {where: fault["times"] for one in reports for where, fault in one.pop("faults").items()},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(result) + "\n")
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
