"""How small a schedule that fails becomes: known bugs are planted, one at a time, and the first failure is shrunk.

    python -m bench.shrink                 all of BUGS; a line each in results/shrink.jsonl, then the medians
    python -m bench.shrink M40 M25         these
    python -m bench.shrink --medians       no bug: the medians of the newest line of each

Each bug of tests/mutants/ is planted in a copy of the source, `pygroups simulate` hunts it
with its default draw, seeds from 0 on, and `pygroups simulate --shrink` makes the first seed that fails small.
`shrink_s` and `shrink_cpu_s` are those of that command, from its start to its end.  Then the unchanged source plays the
small schedule: if that fails too, the shrinker has left the bug and found something else (`holds_without`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.common import HOME, RESULTS, Result
from tests.mutants import gate
from tests.mutants.planting import plant

BUGS: Final = (
    *("M1", "M10", "M12", "M25", "M26", "M28", "M30", "M36", "M38", "M4-kept", "M40", "M6"),
    *("N1", "N3", "N4", "N5", "N6", "M3-disorder"),
    *("M44", "M22"),  # seldom noticed, so their failures hang on much
)
SEEDS: Final = "0:600"
GOAL: Final = {"members": 3, "faults": 15, "shrink_s": 60}  # medians
MEASURES: Final = ("members", "faults", "steps", "tries", "shrink_s", "shrink_cpu_s")


def measure(name: str) -> dict[str, Any] | None:
    """What came of one bug; None if the simulator did not find it in these seeds."""
    mutant = gate.mutants(name)[0]
    with tempfile.TemporaryDirectory() as folder:
        source, file = Path(folder) / "src", Path(folder) / "small.json"
        gate.copy_source(source)
        plant(name, mutant.changes, source)
        failure = _simulate(source, "--seeds", SEEDS, "--profile", mutant.profile, "--jobs", "1")["failure"]
        if failure is None:
            return None
        seed = str(failure["seed"])
        wall, cpu = time.monotonic(), _cpu_s()
        answer = _simulate(source, "--shrink", seed, "--profile", mutant.profile, "--schedule", str(file))
        wall, cpu = time.monotonic() - wall, _cpu_s() - cpu
        unchanged = _simulate(HOME / "src", "--schedule", str(file))
        shrunk = answer["shrunk"]
        return {
            "mutant": name,
            "profile": mutant.profile,
            "seed": failure["seed"],
            "promise": failure["promise"],
            **shrunk["after"],
            "before": shrunk["before"],
            "tries": shrunk["tries"],
            "done": shrunk["done"],
            "shrink_s": round(wall, 1),
            "shrink_cpu_s": round(cpu, 1),
            "holds_without": unchanged["failure"] is None,
            "bytes": file.stat().st_size,
        }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _simulate(source: Path, *options: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "pygroups", "simulate", *options, "--json"]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{' '.join(words)} did not run: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def medians() -> str:
    """The medians over the newest line of each bug, beside what they shall be."""
    lines = (RESULTS / "shrink.jsonl").read_text().splitlines()
    newest = {line["mutant"]: line for line in map(json.loads, lines)}
    told = [f"{len(newest)} bugs, medians:"]
    for name in MEASURES:
        values = [line[name] for line in newest.values()]
        goal = f", goal {GOAL[name]}" if name in GOAL else ""
        told.append(f"{name} {statistics.median(values):g} (worst {max(values):g}{goal})")
    return "  ".join(told)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bugs", nargs="*", default=BUGS, metavar="BUG")
    parser.add_argument("--medians", action="store_true", help="only say the medians of what was measured last")
    options = parser.parse_args()
    for name in () if options.medians else options.bugs:
        result = Result("shrink")
        measured = measure(name)
        if measured is None:
            print(f"{name}: not found in the seeds {SEEDS}", flush=True)
        else:
            result.write(**measured)
    print(medians())
    return 0


if __name__ == "__main__":
    sys.exit(main())
