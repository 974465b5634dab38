"""A second judge of the long count: once a day, a sample of each profile's schedules goes through the audit.

The simulator's checks hear a history as it happens, the audit reads it from the journals; they share no code.  What one
of the two accuses alone is a fault of the group, or a false alarm: both are worth a look.  One line of
results/audited.jsonl for each sample.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.common import HOME, commit

SAMPLE: Final = 50  # schedules; an audit of so many takes about a minute
SHOWN: Final = 5
COMMAND: Final = [sys.executable, "-m", "pygroups"]
ENVIRONMENT: Final = os.environ | {"PYTHONPATH": str(HOME / "src")}


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def is_due(file: Path, profile: str) -> bool:
    """Whether no sample of `profile` was audited today."""
    lines = [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []
    return not any(line["profile"] == profile and line["date"].startswith(today()) for line in lines)


def audit_daily(file: Path, profile: str, seeds: Sequence[int]) -> bool:
    """Audit the first of `seeds`, if it is due; whether nothing is broken.  Where no Spark runs nothing is judged."""
    if not is_due(file, profile):
        return True
    sample = range(seeds[0], seeds[0] + min(SAMPLE, len(seeds)))
    answer = audited(profile, sample)
    if answer is None:
        return True
    broken = [one for promise in answer["promises"] for one in promise["violations"]]
    line = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "profile": profile,
        "seeds": [sample.start, sample.stop],
        "rows": answer["rows"],
        "judged": sum(promise["judged"] for promise in answer["promises"]),
        "broken": sorted({(one["promise"], one["group"]) for one in broken}),
    }
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
    print(
        f"{profile}: the audit of the seeds {sample.start}:{sample.stop} judged {line['judged']:,} facts:"
        f" {len(broken)} violations",
        flush=True,
    )
    for one in broken[:SHOWN]:
        print(f"FOUND by the audit in {one['group']}: {one['promise']} at {one['member']}: {one['detail']}", flush=True)
    return not broken


def audited(profile: str, seeds: range) -> dict[str, Any] | None:
    """What `pygroups audit --json` says of the journals of `seeds`; None, after a word why, if it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--profile", profile, "--seeds", f"{seeds.start}:{seeds.stop}", "--journal", folder, "--json"]
        subprocess.run([*COMMAND, "simulate", *options], env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False)
        done = subprocess.run(
            [*COMMAND, "audit", folder, "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False
        )
    if done.returncode not in (0, 1) or not done.stdout:
        print(f"{profile}: not audited", file=sys.stderr)
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
