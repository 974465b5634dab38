"""The test of the tests: plants each bug of this folder in a copy of the source, and has the simulator hunt for it.

    python tests/mutants/gate.py            all of them
    ONLY=M4 python tests/mutants/gate.py    one, or several with commas

A bug is a file `<id>.toml`: what it is, the profile to hunt in, and the lines that are expected in a file of `src/`
and the lines that are put in their place.  A patch that no longer fits fails the gate, and so does a bug that nobody
notices, unless its file says why that is still `open`.  First the unchanged source has to give no alarm: a gate that
always rings proves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
UNNOTICED = "not noticed"


class Misfit(Exception):
    """The lines that a patch expects are not in the source, or not just once."""


class Mutant(NamedTuple):
    """A planted bug."""

    name: str
    bug: str
    profile: str
    changes: list[dict[str, str]]
    faults: str | None
    open: str | None  # why nobody has to notice it yet


class Hunt(NamedTuple):
    """What came of the hunt for one bug."""

    mutant: Mutant
    schedules: int
    promise: str
    detail: str

    @property
    def noticed(self) -> bool:
        return self.promise != UNNOTICED

    def line(self) -> str:
        if not self.noticed:
            known = f", open: {self.mutant.open}" if self.mutant.open else ""
            return f"{self.mutant.name}: NOT NOTICED in {self.schedules:,} schedules ({self.mutant.bug}{known})"
        return f"{self.mutant.name}: {self.promise} after {self.schedules:,} schedules: {self.detail}"


def mutants(only: str = "") -> list[Mutant]:
    """The bugs of this folder, or those that `only` names."""
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    files = sorted(HERE.glob("*.toml"), key=lambda file: (len(file.stem), file.stem))
    found = [read(file) for file in files if not wanted or file.stem in wanted]
    missing = set(wanted) - {mutant.name for mutant in found}
    if missing:
        raise SystemExit(f"no such bug: {', '.join(sorted(missing))}")
    return found


def read(file: Path) -> Mutant:
    """The bug that `file` describes."""
    entry: dict[str, Any] = tomllib.loads(file.read_text())
    return Mutant(file.stem, entry["bug"], entry["profile"], entry["change"], entry.get("faults"), entry.get("open"))


def copy_source(source: Path) -> None:
    """Put a copy of the product's source at `source`."""
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "data"))


def plant(mutant: Mutant, source: Path) -> None:
    """Change the copy of the source at `source`; Misfit if the lines are not there."""
    for change in mutant.changes:
        file = source / change["file"]
        text = file.read_text()
        if text.count(change["expected"]) != 1:
            raise Misfit(f"{mutant.name}: its lines are found {text.count(change['expected'])} times in {file.name}")
        file.write_text(text.replace(change["expected"], change["planted"]))


def hunt(mutant: Mutant, schedules: int, jobs: int) -> Hunt:
    """Look for `mutant` in the first `schedules` seeds."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        copy_source(source)
        plant(mutant, source)
        answer = simulate(source, mutant, schedules, jobs)
    failure = answer["failure"]
    if failure is None:
        return Hunt(mutant, answer["schedules"], UNNOTICED, "")
    return Hunt(mutant, answer["schedules"], failure["promise"], failure["witness"]["detail"])


def simulate(source: Path, mutant: Mutant, schedules: int, jobs: int) -> dict[str, Any]:
    """What the simulator says about the source at `source`."""
    command = [sys.executable, "-m", "pygroups", "simulate", "--json"]
    command += ["--seeds", f"0:{schedules}", "--profile", mutant.profile, "--jobs", str(jobs)]
    if mutant.faults is not None:
        command += ["--faults", mutant.faults]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{mutant.name}: the simulator did not run: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedules", type=int, default=3_000, help="seeds to hunt one bug in")
    parser.add_argument("--canary", type=int, default=100, help="seeds in which the unchanged source gives no alarm")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    bugs = mutants(os.environ.get("ONLY", ""))
    for profile in sorted({bug.profile for bug in bugs}):
        canary = hunt(Mutant("canary", "nothing is planted", profile, [], None, None), options.canary, options.jobs)
        print(f"unchanged, {profile}: {'no alarm' if not canary.noticed else canary.line()}", flush=True)
        if canary.noticed:
            return 1
    hunts, misfits = [], 0
    for bug in bugs:
        try:
            hunts.append(hunt(bug, options.schedules, options.jobs))
            print(hunts[-1].line(), flush=True)
        except Misfit as misfit:
            misfits += 1
            print(misfit, flush=True)
    found = [one.schedules for one in hunts if one.noticed]
    if found:
        print(f"{len(found)} of {len(bugs)} noticed; median {statistics.median(found):g} schedules, worst {max(found)}")
    unnoticed = [one for one in hunts if not one.noticed and one.mutant.open is None]
    return 1 if unnoticed or misfits else 0


if __name__ == "__main__":
    sys.exit(main())
