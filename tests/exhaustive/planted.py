"""Planted bugs: the search must find a history that breaks a promise."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from tests.mutants.gate import HOME, copy_source, mutants
from tests.mutants.planting import plant

from .explore import Result

KNOWN: Final = {
    "M38": ("A sends", "total", "virtual-synchrony"),
    "M11": ("C joins", "total", "view-accuracy"),
    "M26": ("B sends", "total", "stability-safety"),
    "M16": ("A sends", "uniform", "uniform-agreement"),
    "M9": ("B leaves", "total", "leave-in-time"),
}
"""Planted bugs of tests/mutants, each with a case and a profile that show it, and the promise that it breaks."""


def hunt(name: str, seconds: float, most: int | None = None) -> Result:
    """Search the case of the planted bug `name`, in a copy of the source that has the bug."""
    case, profile, _ = KNOWN[name]
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
