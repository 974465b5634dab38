"""Plants each kept bug in a copy of the source, and has the simulator hunt for it, then the scenarios.

    python -m tests.mutants.gate            all kept bugs; ONLY=M4,N2 some
    SINCE=REV python -m tests.mutants.gate  bugs that are made from what changed since REV (made.py)

A kept bug measures the simulator or a judge.  The files `<protocol>.toml` have them: what the bug is, the profile to
hunt in, and the changes (planting.py).  A bug that no longer fits fails the gate, and so does one that is not noticed,
unless it names the mechanism that hides it (`hidden_by`) and, but for two, the `pair` in which that is taken away too.
First the unchanged source has to give no alarm: a gate that always rings proves nothing.  A few bugs name `tests`,
which hunt in place of the simulator: those of the stack in which a majority decides.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.mutants.planting import Change, Misfit, changes, plant

HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[1]
SOURCE: Final = HOME / "src"
SCENARIOS: Final = "tests/scenarios"
OF_A_CHANGE: Final = ("change", *Change._fields)
UNNOTICED: Final = "not noticed"
UNPAIRED_MAX: Final = 2  # bugs that make no difference and have no pair
HIDDEN_SCHEDULES: Final = 200  # in which a bug is hunted that something else hides: no check has to notice it


class Mutant(NamedTuple):
    """A planted bug."""

    name: str
    bug: str
    profile: str
    changes: Sequence[Change]
    faults: str | None = None  # of the simulator; None: its default draw
    hidden_by: str | None = None  # the other mechanism because of which the bug alone makes no difference
    pair: str | None = None  # the bug in which that is taken away too
    tests: str | None = None  # what pytest plays instead of the simulator and the scenarios


class Hunt(NamedTuple):
    """The outcome of the hunt for one bug."""

    mutant: Mutant
    schedules: int
    promise: str  # or the test that noticed it
    detail: str

    @property
    def noticed(self) -> bool:
        return self.promise != UNNOTICED

    def line(self) -> str:
        """The result in one sentence."""
        mutant = self.mutant
        if not self.noticed:
            known = f", hidden by {mutant.hidden_by}" if mutant.hidden_by else ""
            return f"{mutant.name}: NOT NOTICED in {self.schedules:,} schedules ({mutant.bug}{known})"
        return f"{mutant.name}: {self.promise} after {self.schedules:,} schedules: {self.detail}"


def mutants(only: str = "") -> list[Mutant]:
    """The kept bugs, or those that `only` names, with commas between."""
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    kept = [one for file in sorted(HERE.glob("*.toml")) for one in read(file)]
    missing = set(wanted) - {mutant.name for mutant in kept}
    if missing:
        raise SystemExit(f"no such bug: {', '.join(sorted(missing))}")
    return [mutant for mutant in kept if not wanted or mutant.name in wanted]


def read(file: Path) -> list[Mutant]:
    """The bugs of one file."""
    entries: dict[str, dict[str, Any]] = tomllib.loads(file.read_text())
    return [
        Mutant(name=name, changes=changes(entry), **{key: entry[key] for key in entry if key not in OF_A_CHANGE})
        for name, entry in entries.items()
    ]


def copy_source(source: Path) -> None:
    """Put a copy of the product's source at `source`."""
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("*.pyc.*", "data"))


def hunt(mutant: Mutant, schedules: int, jobs: int) -> Hunt:
    """Look for `mutant` in the first `schedules` seeds, then in the scenarios; or in the tests that it names."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        copy_source(source)
        plant(mutant.name, mutant.changes, source)
        if mutant.tests is not None:
            return played(source, mutant, mutant.tests)
        found = simulated(source, mutant, schedules, jobs)
        if not found.noticed:
            found = played(source, mutant, SCENARIOS)._replace(schedules=found.schedules)
        return found


def simulated(source: Path, mutant: Mutant, schedules: int, jobs: int) -> Hunt:
    """The verdict of the simulator on the source at `source`."""
    command = [sys.executable, "-m", "pygroups", "simulate", "--json"]
    command += ["--seeds", f"0:{schedules}", "--profile", mutant.profile, "--jobs", str(jobs)]
    if mutant.faults is not None:
        command += ["--faults", mutant.faults]
    done = subprocess.run(command, env=environment(source), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{mutant.name}: the simulator did not run: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    failure = answer["failure"]
    if failure is None:
        return Hunt(mutant, answer["schedules"], UNNOTICED, "")
    return Hunt(mutant, answer["schedules"], failure["promise"], failure["witness"]["detail"])


def played(source: Path, mutant: Mutant, tests: str) -> Hunt:
    """The verdict of the tests that pytest knows as `tests` on the source at `source`."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=line", "-p", "no:cacheprovider"]
    command += ["-o", f"pythonpath={source} {HOME}", tests]
    command += ["-m", "not slow and not long"] if mutant.tests is None else []
    done = subprocess.run(command, env=environment(source), capture_output=True, text=True, check=False, cwd=HOME)
    if done.returncode == 0:
        return Hunt(mutant, 0, UNNOTICED, "")
    failed = re.search(r"^FAILED (\S+)(?: - (.*))?$", done.stdout, re.MULTILINE)
    if done.returncode != 1 or failed is None:
        raise SystemExit(f"{mutant.name}: {tests} did not run: {(done.stdout + done.stderr).strip()[-500:]}")
    return Hunt(mutant, 0, failed[1], failed[2] or "")


def environment(source: Path) -> dict[str, str]:
    """In which Python finds the product at `source`."""
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}


def gate(bugs: Sequence[Mutant], schedules: int, canary: int, jobs: int) -> int:
    """Hunt `bugs` and print the outcome of each; 0 if all are noticed or hidden by what they name."""
    failed = False
    for bug in [*_canaries(bugs), *bugs]:
        most = canary if not bug.changes else min(schedules, HIDDEN_SCHEDULES) if bug.hidden_by else schedules
        try:
            found = hunt(bug, most, jobs)
        except Misfit as misfit:
            print(misfit, flush=True)
            failed = True
            continue
        print(found.line(), flush=True)
        if not bug.changes and found.noticed:
            return 1
        failed = failed or not (not bug.changes or found.noticed or bug.hidden_by)
    return int(failed)


def _canaries(bugs: Sequence[Mutant]) -> list[Mutant]:
    """The unchanged source, in each way in which one of `bugs` is hunted."""
    ways = sorted({(bug.profile, bug.tests or "") for bug in bugs})
    return [Mutant(f"unchanged-{profile}", "nothing", profile, [], tests=tests or None) for profile, tests in ways]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedules", type=int, default=3_000, help="seeds to hunt one kept bug in")
    parser.add_argument("--canary", type=int, default=100, help="seeds in which the unchanged source gives no alarm")
    parser.add_argument("--minutes", type=float, default=20, help="with SINCE: the time for all made bugs together")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    if since := os.environ.get("SINCE"):
        from tests.mutants.made import hunt_since

        return hunt_since(since, options.minutes, options.jobs)
    return gate(mutants(os.environ.get("ONLY", "")), options.schedules, options.canary, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
