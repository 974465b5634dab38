"""The test of the tests: plants each bug of this folder in a copy of the source, and has the simulator hunt for it.

    python tests/mutants/gate.py            all of them; what was noticed before in the same source is not hunted again
    ONLY=M4 python tests/mutants/gate.py    one, or several with commas
    AGAIN=1 python tests/mutants/gate.py    also what was noticed before
    python tests/mutants/gate.py --table    no hunt: rewrite the table in docs/mutants.md from the results

A bug is a file `<id>.toml`: the protocol, what the bug is, the profile to hunt in, and the lines that are expected in a
file of `src/` and the lines that are put in their place.  A patch that no longer fits fails the gate, and so does a bug
that nobody notices, unless its file names what hides it (`hidden_by`) and, but for two, the `pair` in which that is
taken away too.  First the unchanged source has to give no alarm: a gate that always rings proves nothing.

The simulator hunts, with its default draw, then the scenario tests; the gate stops at the first notice.  Where both
do not see it, since it lies in a driver or hangs on a rare coincidence, the file names `tests` that hunt instead.
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
import time
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[1]
SOURCE: Final = HOME / "src"
SCENARIOS: Final = "tests/scenarios"
NOT_PLANTED: Final = HERE / "not_planted.toml"
UNNOTICED: Final = "not noticed"
UNPAIRED_MAX: Final = 2  # bugs that make no difference and have no pair
HIDDEN_SCHEDULES: Final = 200  # in which a bug is hunted that something else hides: nobody has to notice it

sys.path.insert(0, str(HOME))  # so that it runs as a script too


class Misfit(Exception):
    """The lines that a patch expects are not in the source, or not just once."""


class Mutant(NamedTuple):
    """A planted bug."""

    name: str
    bug: str
    profile: str
    changes: list[dict[str, str]]
    protocol: str = ""
    faults: str | None = None  # of the simulator; None: its default draw
    hidden_by: str | None = None  # the other mechanism because of which the bug alone makes no difference
    pair: str | None = None  # the bug in which that is taken away too
    tests: str | None = None  # what pytest plays instead of the simulator and the scenarios


class Hunt(NamedTuple):
    """What came of the hunt for one bug."""

    mutant: Mutant
    schedules: int
    promise: str  # or the test that noticed it
    detail: str
    seconds: float = 0.0

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


# -- the bugs


def mutants(only: str = "") -> list[Mutant]:
    """The bugs of this folder, or those that `only` names."""
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    files = sorted((file for file in HERE.glob("*.toml") if file != NOT_PLANTED), key=_rank)
    found = [read(file) for file in files if not wanted or file.stem in wanted]
    missing = set(wanted) - {mutant.name for mutant in found}
    if missing:
        raise SystemExit(f"no such bug: {', '.join(sorted(missing))}")
    return found


def _rank(file: Path) -> tuple[str, int, str]:
    """M2 before M10, a bug before its pair."""
    letter, number, rest = re.fullmatch(r"([A-Z]+)(\d+)(.*)", file.stem).groups()  # type: ignore[union-attr]
    return letter, int(number), rest


def read(file: Path) -> Mutant:
    """The bug that `file` describes."""
    entry: dict[str, Any] = tomllib.loads(file.read_text())
    changes = entry.pop("change")
    return Mutant(name=file.stem, changes=changes, **entry)


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


# -- the hunt


def hunt(mutant: Mutant, schedules: int, jobs: int) -> Hunt:
    """Look for `mutant` in the first `schedules` seeds, then in the scenarios; or in the tests that it names."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        copy_source(source)
        plant(mutant, source)
        if mutant.tests is not None:
            found = played(source, mutant, mutant.tests)
        else:
            found = simulated(source, mutant, schedules, jobs)
            if not found.noticed and (HOME / SCENARIOS).is_dir():
                found = played(source, mutant, SCENARIOS)._replace(schedules=found.schedules)
    return found._replace(seconds=time.monotonic() - began)


def simulated(source: Path, mutant: Mutant, schedules: int, jobs: int) -> Hunt:
    """What the simulator says about the source at `source`."""
    command = [sys.executable, "-m", "pygroups", "simulate", "--json"]
    command += ["--seeds", f"0:{schedules}", "--profile", mutant.profile, "--jobs", str(jobs)]
    if mutant.faults is not None:
        command += ["--faults", mutant.faults]
    done = subprocess.run(command, env=_environment(source), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{mutant.name}: the simulator did not run: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    failure = answer["failure"]
    if failure is None:
        return Hunt(mutant, answer["schedules"], UNNOTICED, "")
    return Hunt(mutant, answer["schedules"], failure["promise"], failure["witness"]["detail"])


def played(source: Path, mutant: Mutant, tests: str) -> Hunt:
    """What the tests that pytest knows as `tests` say about the source at `source`."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=line", "-p", "no:cacheprovider"]
    command += ["-o", f"pythonpath={source} {HOME}", tests]
    command += ["-m", "not slow"] if mutant.tests is None else []
    done = subprocess.run(command, env=_environment(source), capture_output=True, text=True, check=False, cwd=HOME)
    if done.returncode == 0:
        return Hunt(mutant, 0, UNNOTICED, "")
    failed = re.search(r"^FAILED (\S+)(?: - (.*))?$", done.stdout, re.MULTILINE)
    if done.returncode != 1 or failed is None:
        raise SystemExit(f"{mutant.name}: {tests} did not run: {(done.stdout + done.stderr).strip()[-500:]}")
    return Hunt(mutant, 0, failed[1], failed[2] or "")


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}


# -- the gate


def gate(bugs: list[Mutant], schedules: int, canary: int, jobs: int, again: bool) -> int:
    """Hunt `bugs`, go on where the last one stopped, and say what came of it; 0 if all is well."""
    from tests.mutants import results

    canaries = _canaries(bugs)
    hunts: list[Hunt] = []
    failed = False
    for bug in [*canaries, *bugs]:
        unchanged = not bug.changes
        most = canary if unchanged else min(schedules, HIDDEN_SCHEDULES) if bug.hidden_by else schedules
        found = None if again else results.known(bug, most)
        try:
            if found is None:
                found = hunt(bug, most, jobs)
                results.append(found)
        except Misfit as misfit:
            print(misfit, flush=True)
            failed = True
            continue
        print(found.line(), flush=True)
        if unchanged and found.noticed:
            return 1
        failed = failed or not (unchanged or found.noticed or bug.hidden_by)
        hunts += [] if unchanged else [found]
    print("\n" + results.table(hunts))
    return 1 if failed else 0


def _canaries(bugs: list[Mutant]) -> list[Mutant]:
    """The unchanged source, in each way in which one of `bugs` is hunted."""
    ways = sorted({(bug.profile, bug.tests or "") for bug in bugs})
    return [
        Mutant(f"unchanged-{Path(tests).stem or profile}", "nothing is planted", profile, [], tests=tests or None)
        for profile, tests in ways
    ]


def main() -> int:
    from tests.mutants import results

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedules", type=int, default=3_000, help="seeds to hunt one bug in")
    parser.add_argument("--canary", type=int, default=100, help="seeds in which the unchanged source gives no alarm")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--table", action="store_true", help="only rewrite the table in docs/mutants.md")
    options = parser.parse_args()
    if options.table:
        results.rewrite()
        return 0
    bugs = mutants(os.environ.get("ONLY", ""))
    code = gate(bugs, options.schedules, options.canary, options.jobs, bool(os.environ.get("AGAIN")))
    results.rewrite()
    return code


if __name__ == "__main__":
    sys.exit(main())
