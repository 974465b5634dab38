"""All tests, as `make test` runs them: `python -m tests.halves [PYTEST OPTIONS]`.

Two pytest processes run at the same time.  One runs the tests that compute: they keep the cores.  The other one runs
the tests of processes, sockets and terminals: they mostly wait.  Together they take as long as the longer half.

The output of the second process goes to the terminal as it comes, that of the first one follows as a whole.  The exit
code is 0 if both passed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Final, NamedTuple

HOME: Final = Path(__file__).resolve().parents[1]
COMPUTE: Final = ("pipeline", "sim", "mutants", "scenarios", "layers", "core", "wire", "journal", "house", "exhaustive")
"""The folders of the tests that compute. Every other folder, new ones too, is of those that wait."""

SLOWEST: Final = ("--durations=25", "--durations-min=5")
"""Each half lists its slowest tests at its end."""


class Half(NamedTuple):
    name: str
    command: list[str]


class Ended(NamedTuple):
    name: str
    code: int
    seconds: float


def halves(options: Sequence[str] = ()) -> tuple[Half, Half]:
    """The two calls of pytest. Each has a cache of its own, as both write theirs at the end."""
    folders = [f"tests/{name}" for name in COMPUTE]
    return (
        Half("tests that wait", [*_pytest("wait", options), *(f"--ignore={folder}" for folder in folders)]),
        Half("tests that compute", [*_pytest("compute", options), *folders]),
    )


def _pytest(cache: str, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{cache}", *SLOWEST, *options]


def run(now: Half, later: Half) -> list[Ended]:
    """Both at the same time; the output of `now` comes at once, that of `later` when both have ended."""
    print(f"===== {now.name} (at the same time {later.name}, whose output follows)", flush=True)
    with tempfile.TemporaryFile() as output:
        try:
            # An interrupt goes to both processes too: leaving the pool waits until pytest has told what it has.
            with ThreadPoolExecutor(2) as pool:
                ended = [pool.submit(_ended, now, None), pool.submit(_ended, later, output)]
                return [half.result() for half in ended]
        finally:
            print(f"===== {later.name}", flush=True)
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()


def _ended(half: Half, output: IO[bytes] | None) -> Ended:
    """Runs a half. Its output goes to `output`, None for ours."""
    began = time.monotonic()
    code = subprocess.Popen(half.command, stdout=output, stderr=subprocess.STDOUT, cwd=HOME).wait()
    return Ended(half.name, code, time.monotonic() - began)


def main(options: Sequence[str]) -> int:
    """0 if both halves passed, 1 if one did not, 130 if interrupted."""
    try:
        ended = run(*halves(options))
    except KeyboardInterrupt:
        return 130
    for half in ended:
        outcome = "passed" if half.code == 0 else f"FAILED (exit code {half.code})"
        print(f"===== {half.name}: {outcome} after {half.seconds:.0f} s")
    return int(any(half.code for half in ended))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
