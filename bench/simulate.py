"""The long count: schedules of every profile, piece by piece, until 100,000 have found nothing since the last change.

    python -m bench.simulate --minutes 20

Each piece is one call of `pygroups simulate`, and one line of results/simulate.jsonl as soon as it is done: a stop
loses at most the piece that is under way.  A line says what its schedules belong to: the digest of the profile's
layers, of core and of wire, and of what draws, plays and judges schedules, without comments and texts, so that it holds
for a tree that is not committed too.  The count of a digest goes on behind the highest seed that was used for it.
Once a day a sample of each profile goes through the audit (sample.py).
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from bench.common import HOME, RESULTS, commit
from bench.sample import audit_daily
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.sim.batches.coverage import EMPTY_MAX
from pygroups.sim.batches.summary import faults_by_name

GOAL: Final = 100_000
PIECE: Final = 1_000  # schedules at most in a line
FIRST: Final = 100  # while nobody knows how long they take
PIECE_S: Final = 90.0
SUMMED: Final = ("profile", "schedules", "empty", "simulated_s", "seconds")
PLAYED: Final = (
    "pygroups.sim.schedules.draw",
    "pygroups.sim.batches.runner",
)  # what draws schedules, and what plays and judges them
COMMAND: Final = [sys.executable, "-m", "pygroups", "simulate"]
ENVIRONMENT: Final = os.environ | {"PYTHONPATH": str(HOME / "src")}
CANDIDATES: Final = HOME / "tests" / "sim" / "found" / "candidates"


class Counted(NamedTuple):
    """What the lines say of one profile as it is now."""

    schedules: int
    empty: int
    simulated_s: float
    seconds: float
    next_seed: int
    found: list[str]


# -- what a count belongs to


def digest_of(profile: Profile, home: Path = HOME) -> str:
    """Of all code that a stack of `profile` runs: its layers and what they import of `layers`, core and wire; and of
    the draw, the simulated world and the checks: what they look for is what the count says was not found."""
    source = home / "src" / "pygroups"
    files = {*source.glob("core/**/*.py"), *source.glob("wire/**/*.py")}
    files |= _with_imports(source, {*PLAYED, *(layer.__module__ for layer in profile.layers)})
    digest = hashlib.sha256(profile.stack_name().encode())
    for file in sorted(files):
        digest.update(f"\n{file.relative_to(source)}\n{_code(file.read_text())}".encode())
    return digest.hexdigest()[:16]


def _with_imports(source: Path, modules: Iterable[str]) -> set[Path]:
    """The files of these modules and of all modules of `pygroups.layers` and `pygroups.sim` that they import."""
    found: set[Path] = set()
    waiting = sorted(modules)
    while waiting:
        module = waiting.pop()
        file = source.parent.joinpath(*module.split(".")).with_suffix(".py")
        if file in found or not file.is_file():
            continue
        found.add(file)
        waiting += [name for name in _imports(module, file.read_text()) if ".layers." in name or ".sim." in name]
    return found


@cache
def _imports(module: str, text: str) -> list[str]:
    """The dotted names that the module with this text imports, or may."""
    return list(_imported(module, ast.parse(text)))


def _imported(module: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def _code(text: str) -> str:
    """What a file with this text does: neither its comments, nor its docstrings, nor how it is laid out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


# -- the lines


def read(file: Path) -> list[dict[str, Any]]:
    """The lines of `file`; one that was torn when a count was stopped says nothing."""
    lines: list[dict[str, Any]] = []
    for text in file.read_text().splitlines() if file.exists() else ():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        lines.append(line)
    return lines


def append(file: Path, line: dict[str, Any]) -> None:
    """Add a line, on its own even if the last one was torn; it is on the disk when this returns."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab+") as out:
        size = out.seek(0, os.SEEK_END)
        torn = size > 0 and os.pread(out.fileno(), 1, size - 1) != b"\n"
        out.write((b"\n" if torn else b"") + json.dumps(line).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())


def counted(lines: Sequence[dict[str, Any]], profile: str, digest: str, first: int = 0) -> Counted:
    """What was counted for `profile` as long as its digest is this one; `first` is the first seed of a new count."""
    those = [line for line in lines if line["profile"] == profile and line["digest"] == digest]
    return Counted(
        schedules=sum(line["schedules"] for line in those),
        empty=sum(line["empty"] for line in those),
        simulated_s=sum(line["simulated_s"] for line in those),
        seconds=sum(line["seconds"] for line in those),
        next_seed=max((line["seeds"][1] for line in those), default=first),
        found=[f"{line['found']} (seed {line['seeds'][1] - 1})" for line in those if line["found"]],
    )


def piece_size(so_far: Counted, left_s: float) -> int:
    """So many schedules that a piece ends about when the time does and a stop loses little."""
    if not so_far.schedules or not so_far.seconds:
        return FIRST
    rate = so_far.schedules / so_far.seconds
    return max(1, min(PIECE, int(rate * min(left_s, PIECE_S))))


# -- counting


def simulate(*options: str) -> dict[str, Any]:
    """What `pygroups simulate --json` says; SystemExit if it could not do it."""
    done = subprocess.run(
        [*COMMAND, *options, "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(done.returncode or 1)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def count_piece(profile: str, digest: str, seeds: range, jobs: str | None) -> dict[str, Any]:
    """Play `seeds`; the line that says what came of it."""
    options = ["--profile", profile, "--seeds", f"{seeds.start}:{seeds.stop}", *(["--jobs", jobs] if jobs else [])]
    answer = simulate(*options)
    failure = answer["failure"]
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "digest": digest,
        "seeds": [seeds.start, failure["seed"] + 1 if failure else seeds.stop],
        "found": failure["promise"] if failure else None,
        "witness": failure["witness"] if failure else None,
        **{name: answer[name] for name in SUMMED},
        "counts": {name: value for name, value in answer.items() if name not in SUMMED and isinstance(value, int)},
        "faults": faults_by_name(answer["faults"]),
        "stages": answer["stages"],
        "drops": sum(answer["drops"].values()),
        "shortcomings": answer["shortcomings"],
    }


def shrunk(profile: str, seed: int) -> Path:
    """A small schedule that breaks the same promise, in a file that is no test yet; what happens in it is printed."""
    CANDIDATES.mkdir(exist_ok=True)
    file = CANDIDATES / f"{profile}-{seed}.json"
    subprocess.run(
        [*COMMAND, "--shrink", str(seed), "--profile", profile, "--schedule", str(file)], env=ENVIRONMENT, check=False
    )
    return file


def said(profile: str, so_far: Counted) -> str:
    """How far the count of a profile is."""
    text = (
        f"{profile}: {so_far.schedules:,} of {GOAL:,} schedules ({so_far.empty:,} empty),"
        f" {so_far.simulated_s / 3600:,.1f} simulated hours, since the source changed last"
    )
    return text + (f"; FOUND: {', '.join(so_far.found)}" if so_far.found else "; nothing found")


Second = Callable[[str, Sequence[int]], bool]


def go_on(
    file: Path,
    profiles: Sequence[str],
    minutes: float,
    jobs: str | None,
    second: Second = lambda profile, seeds: True,
    first: int = 0,
) -> int:
    """Count until the time is over or something is found; the exit code.  `second` judges each piece that held once
    more, and says whether it found nothing.  A new count begins with the seed `first`."""
    until = time.monotonic() + 60 * minutes
    while True:
        lines = read(file)
        digests = {name: digest_of(PROFILES[name]) for name in profiles}
        sums = {name: counted(lines, name, digests[name], first) for name in profiles}
        left = until - time.monotonic()
        if left <= 0:
            print("\n".join(said(name, so_far) for name, so_far in sums.items()))
            return int(any(so_far.empty > EMPTY_MAX * so_far.schedules for so_far in sums.values()))
        profile = min(profiles, key=lambda name: (sums[name].schedules, name))
        seed = sums[profile].next_seed
        seeds = range(seed, seed + piece_size(sums[profile], left))
        line = count_piece(profile, digests[profile], seeds, jobs)
        if digest_of(PROFILES[profile]) != digests[profile]:
            print(
                f"{profile}: its source changed meanwhile, the seeds {seeds.start}:{seeds.stop} do not count",
                flush=True,
            )
            continue
        append(file, line)
        print(
            "\n".join([said(profile, counted(read(file), profile, digests[profile])), *line["shortcomings"]]),
            flush=True,
        )
        if line["found"] is not None:
            return tell_found(profile, line)
        if not second(profile, seeds):
            return 1


def tell_found(profile: str, line: dict[str, Any]) -> int:
    """Say what was found, and make it small."""
    seed = line["seeds"][1] - 1
    print(f"FOUND in seed {seed} of {profile}: {line['found']}: {line['witness']['detail']}", flush=True)
    file = shrunk(profile, seed)
    if file.exists():
        print(f"the small schedule is {file}; mend it, then move the file one folder up, where it is a test for ever")
    return 1


def alone(file: TextIO) -> bool:
    """Whether nobody else counts into this file: two would count the same seeds."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long; the last piece may end a little later")
    parser.add_argument("--profile", default="", help="names with commas; all that exist if not given")
    parser.add_argument("--jobs", default="", help="processes at once; as many as there are cores if not given")
    parser.add_argument("--first", type=int, default=0, help="the first seed of a source that was not counted before")
    parser.add_argument("--results", type=Path, default=RESULTS / "simulate.jsonl", help="the file of lines")
    wishes = parser.parse_args()
    profiles = [name.strip() for name in wishes.profile.split(",") if name.strip()] or list(PROFILES)
    unknown = [name for name in profiles if name not in PROFILES]
    if unknown:
        parser.error(f"no such profile: {', '.join(unknown)}; there are: {', '.join(PROFILES)}")
    wishes.results.parent.mkdir(parents=True, exist_ok=True)
    with wishes.results.open("a") as file:
        if not alone(file):
            parser.error(f"another count goes on in {wishes.results}")
        try:
            audited = partial(audit_daily, wishes.results.with_name("audited.jsonl"))
            return go_on(wishes.results, profiles, wishes.minutes, wishes.jobs or None, audited, wishes.first)
        except KeyboardInterrupt:
            print("stopped; what was counted so far is kept", file=sys.stderr)
            return 130


if __name__ == "__main__":
    sys.exit(main())
