"""The test of the checkers' tests: makes each check blind in a plausible way, and looks which planted history shows it.

    python -m tests.mutants.checkers.gate sim         the running checks; a second for each
    python -m tests.mutants.checkers.gate pipeline    the rules of the audit; one Spark session for all
    ONLY=sim-fifo-late python -m ...                  one, or several with commas

`sim.toml` and `pipeline.toml` have the blind checks: what each does not see, and its changes (planting.py).  The
unchanged checks have to pass first.  A blind check that no longer fits fails the gate, and so does one that no planted
history shows.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from tests.mutants import gate
from tests.mutants.planted_in_place import planted_in_place
from tests.mutants.planting import Change, changes, plant

HERE: Final = Path(__file__).parent
PROMISES: Final = Path("pygroups/sim/promises")


class Blind(NamedTuple):
    """A check that does not see something."""

    name: str
    bug: str
    changes: Sequence[Change]


def blind_checks(room: str, only: str = "") -> list[Blind]:
    """Those of `room`, sim or pipeline, or those that `only` names."""
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    entries = tomllib.loads((HERE / f"{room}.toml").read_text())
    return [
        Blind(name, entry["bug"], changes(entry)) for name, entry in entries.items() if not wanted or name in wanted
    ]


def promises_of(blind: Blind) -> set[str]:
    """The promises in which the check no longer sees everything: the text of the bug begins with them."""
    return {promise.strip() for promise in blind.bug.partition(":")[0].split(",")}


def patched(blind: Blind) -> Iterator[tuple[str, str]]:
    """The files that `blind` changes, and what stands in them then; Misfit if a change does not fit."""
    with tempfile.TemporaryDirectory() as folder:
        for change in blind.changes:
            copy = Path(folder) / change.file
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                copy.write_text((gate.SOURCE / change.file).read_text())
        plant(blind.name, blind.changes, Path(folder))
        for name in dict.fromkeys(change.file for change in blind.changes):
            yield name, (Path(folder) / name).read_text()


def hunt_running(blind: Sequence[Blind]) -> Iterator[tuple[Blind, str | None]]:
    """Each blind check with the planted history that shows it, each in a process of its own."""
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        yield from zip(blind, pool.imap(shown_by, blind), strict=True)


def shown_by(blind: Blind) -> str | None:
    """The first planted history that the running checks, so changed, judge otherwise than they should.

    Spoils the process that it is called in: the checks may be imported from a changed copy.
    """
    if all(":" in change.at for change in blind.changes):
        with planted_in_place(blind.changes):
            return _first_failure(blind)
    with tempfile.TemporaryDirectory() as folder:
        checks = Path(folder) / PROMISES
        shutil.copytree(gate.SOURCE / PROMISES, checks, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in patched(blind):
            (Path(folder) / name).write_text(text)
        for module in [name for name in sys.modules if name.startswith(("pygroups.sim", "tests.sim"))]:
            del sys.modules[module]
        changed = ModuleType("pygroups.sim.promises")
        changed.__path__ = [str(checks)]
        sys.modules[changed.__name__] = changed
        found = _first_failure(blind)
        used = Path(sys.modules["pygroups.sim.promises.judge"].__file__ or "")
        assert used.is_relative_to(folder), f"the checks came from {used}"
        return found


def _first_failure(blind: Blind) -> str | None:
    verdicts = importlib.import_module("tests.sim.planted_verdicts")
    return next(verdicts.failures(promises_of(blind)), None)


def report(room: str, hunts: Iterator[tuple[Blind, str | None]]) -> int:
    """Print what became of each; 1 if one stayed hidden."""
    count = hidden = 0
    for blind, shown_by in hunts:
        count += 1
        hidden += shown_by is None
        print(f"{blind.name}: {shown_by or 'NOT NOTICED'} ({blind.bug})", flush=True)
    print(f"{room}: {count - hidden} of {count} blind checks noticed")
    return 1 if hidden or not count else 0


def main(rooms: list[str]) -> int:
    result, only = 0, os.environ.get("ONLY", "")
    for room in rooms or ["sim", "pipeline"]:
        blind = blind_checks(room, only)
        if only and not blind:
            continue
        if room == "sim":
            ((_, alarm),) = hunt_running([Blind("unchanged", "", [])])
            if alarm is not None:
                raise SystemExit(f"the unchanged checks fail already: {alarm}")
            result |= report(room, hunt_running(blind))
        else:
            from tests.mutants.checkers.audited import hunt_rules

            result |= report(room, hunt_rules(blind))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
