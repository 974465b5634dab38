"""All tests, as `make test` runs them: `python -m tests.parts [PYTEST OPTIONS]`.

Nine pytest processes and mypy run at the same time.  The first three run the tests of channels, of whole processes and
of commands, which mostly wait.  The others keep the cores: the tests of the audit, which share one Spark in each half,
of planted bugs, of the simulator, of scenarios, and of layers, drivers and blocks.  Some of these are nice: they run
while the longer parts wait, so that no core is idle until nearly the end.

The output of the first process goes to the terminal as it comes, that of the others follows as a whole.  The exit code
is 0 if all passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, NamedTuple

HOME: Final = Path(__file__).resolve().parents[1]
BESIDE: Final = {
    "processes": ("e2e",),
    "commands": ("cli", "examples", "testing", "contrib"),
    "audit": (
        "pipeline/test_[a-or]*.py",
        "pipeline/test_pl*.py",
        "pipeline/test_si*.py",
        "pipeline/test_source.py",
        "pipeline/test_source_s*.py",
    ),
    "audit, second half": (
        "pipeline/test_p[!l]*.py",
        "pipeline/test_s[!io]*.py",
        "pipeline/test_source_ordered.py",
        "pipeline/test_[qt-z]*.py",
    ),
    "mutants": ("mutants", "house", "exhaustive"),
    "simulator": ("sim",),
    "scenarios": ("scenarios",),
    "layers": ("layers", "core", "wire", "journal", "drivers", "blocks"),
}
"""The folders of the parts whose output comes at the end, or files of one. Every other folder, new ones too, is of the
first part."""
NICE: Final = {"mutants": 10, "simulator": 10, "scenarios": 10, "layers": 10}
"""By how much the parts are nice that never wait for a process or a clock: those that do come first."""
SLOWEST: Final = ("--durations=25", "--durations-min=5")
"""Each part lists its slowest tests at its end."""


class Part(NamedTuple):
    name: str
    command: list[str]
    nice: int = 0


class Ended(NamedTuple):
    name: str
    code: int
    seconds: float
    cpu_s: float  # with all processes that it started and waited for


def parts(options: Sequence[str] = ()) -> list[Part]:
    """The calls of pytest, each with a cache of its own, as each writes one at the end; and that of mypy."""
    beside = {name: [path for folder in folders for path in _paths(folder)] for name, folders in BESIDE.items()}
    whole = dict.fromkeys(folder.partition("/")[0] for folders in BESIDE.values() for folder in folders)
    ignored = [f"--ignore=tests/{folder}" for folder in whole]
    return [
        Part("tests that wait", [*_pytest("wait", options), *ignored]),
        *(
            Part(f"tests of the {name}", [*_pytest(name, options), *folders], NICE.get(name, 0))
            for name, folders in beside.items()
        ),
        Part("types", [sys.executable, "-m", "mypy", "--strict", "src"]),
    ]


def _paths(folder: str) -> list[str]:
    return [str(path.relative_to(HOME)) for path in sorted((HOME / "tests").glob(folder))]


def _pytest(cache: str, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{cache}", *SLOWEST, *options]


def run(now: Part, later: Sequence[Part]) -> list[Ended]:
    """All at the same time; the output of `now` comes at once, that of each of `later` when all have ended."""
    names = " and ".join(part.name for part in later)
    print(f"===== {now.name} (at the same time {names}, whose output follows)", flush=True)
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in later]
        try:
            # An interrupt goes to all processes too: leaving the pool waits until pytest has told what it has.
            with ThreadPoolExecutor(len(later)) as pool:
                ended = [pool.submit(_ended, part, output) for part, output in zip(later, outputs, strict=True)]
                return [_ended(now, None), *(part.result() for part in ended)]
        finally:
            for part, output in zip(later, outputs, strict=True):
                print(f"===== {part.name}", flush=True)
                output.seek(0)
                shutil.copyfileobj(output, sys.stdout.buffer)
                sys.stdout.flush()


def _ended(part: Part, output: IO[bytes] | None) -> Ended:
    """Runs a part. Its output goes to `output`, None for ours."""
    began = time.monotonic()
    process = subprocess.Popen(part.command, stdout=output, stderr=subprocess.STDOUT, cwd=HOME)
    os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, process.pid) + part.nice)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(part.name, process.returncode, time.monotonic() - began, usage.ru_utime + usage.ru_stime)


def main(options: Sequence[str]) -> int:
    """0 if all parts passed, 1 if one did not, 130 if interrupted."""
    now, *later = parts(options)
    try:
        ended = run(now, later)
    except KeyboardInterrupt:
        return 130
    for part in ended:
        outcome = "passed" if part.code == 0 else f"FAILED (exit code {part.code})"
        print(f"===== {part.name}: {outcome} after {part.seconds:.0f} s, {part.cpu_s:.0f} CPU s")
    return int(any(part.code for part in ended))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
