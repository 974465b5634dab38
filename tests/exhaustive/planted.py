"""Planted bugs: the search must find a history that breaks a promise."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tests.mutants.gate import HOME, copy_source, mutants
from tests.mutants.planting import plant

from .explore import Result


class Hunted(NamedTuple):
    """A planted bug of tests/mutants, a case and a profile that show it, and the promise that it breaks."""

    bug: str
    case: str
    profile: str
    promise: str


KNOWN: Final = (
    Hunted("M38", "A sends", "total", "virtual-synchrony"),
    Hunted("M11", "C joins", "total", "view-accuracy"),
    Hunted("M26", "B sends", "total", "stability-safety"),
    Hunted("M9", "B leaves", "total", "leave-in-time"),
    Hunted("M16", "A sends", "uniform", "uniform-agreement"),
    Hunted("M16", "A sends, an isolation", "uniform", "uniform-agreement"),
    Hunted("M38", "A sends", "uniform", "uniform-agreement"),
    Hunted("M38", "A sends, an isolation", "uniform", "uniform-agreement"),
    Hunted("T3", "A sends, a broadcast is lost", "total1999", "liveness"),
)


def hunt(hunted: Hunted, seconds: float, most: int | None = None) -> Result:
    """Search the case of the planted bug, in a copy of the source that has the bug."""
    name, case, profile, _ = hunted
    (bug,) = mutants(name)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        copy_source(source)
        plant(bug.name, bug.changes, source)
        command = [sys.executable, "-m", "tests.exhaustive", "--json", "--case", case, "--profile", profile]
        command += ["--seconds", str(seconds), *([] if most is None else ["--most", str(most)])]
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{HOME}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{name}: the search did not run: {done.stderr.strip()[-500:]}")
    return msgspec.json.decode(done.stdout, type=Result)
