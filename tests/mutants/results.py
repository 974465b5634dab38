"""What came of the hunts: a line each in bench/results/mutants.jsonl, and the tables of docs/mutants.md from them."""

from __future__ import annotations

import hashlib
import json
import statistics
import subprocess
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.mutants.gate import HOME, NOT_PLANTED, SOURCE, UNNOTICED, Hunt, Mutant, mutants

RESULTS: Final = HOME / "bench" / "results" / "mutants.jsonl"
PAGE: Final = HOME / "docs" / "mutants.md"
BEGIN: Final = "<!-- from bench/results/mutants.jsonl, by tests/mutants/gate.py --table -->"
END: Final = "<!-- end -->"
RENAMED: Final = {
    "no-fall": "no-exception",
    "::test_collected_and_installed_in_one_turn": "::test_gms_14_collected_and_installed_in_one_turn",
    "::test_a_view_that_ends_as_it_begins": "::test_7_a_view_that_ends_as_it_begins",
    "::test_asked_by_one_who_is_ahead": "::test_gms_15_asked_by_one_that_is_ahead",
}
"""Promises and tests by their names in lines until 2026-11-23."""
NEVER_HUNTED: Final = {"schedules": 0, "promise": UNNOTICED, "detail": "", "seconds": 0.0, "noticed": False}
SIMULATED: Final = ("core", "layers", "wire", "sim", "journal")  # the rooms that the simulator plays


# -- a line for each hunt


def append(hunt: Hunt) -> None:
    """Write down what came of a hunt."""
    mutant = hunt.mutant
    line = {
        "bench": "mutants",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _commit(),
        "mutant": mutant.name,
        "patch": patch_digest(mutant),
        "source": source_digest(mutant),
        "noticed": hunt.noticed,
        "promise": hunt.promise,
        "detail": hunt.detail,
        "schedules": hunt.schedules,
        "seconds": round(hunt.seconds, 1),
    }
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")


def lines() -> list[dict[str, Any]]:
    """All that was written down, the oldest first."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def known(mutant: Mutant, schedules: int) -> Hunt | None:
    """What came of it before, if the source and the patch are the same and it was noticed, or hunted as long."""
    patch, source = patch_digest(mutant), source_digest(mutant)
    for line in reversed(lines()):
        if (line["mutant"], line["patch"], line["source"]) != (mutant.name, patch, source):
            continue
        long_enough = line["schedules"] >= schedules if mutant.tests is None else not mutant.changes
        if line["noticed"] or long_enough:
            return as_hunt(mutant, line)
    return None


def as_hunt(mutant: Mutant, line: dict[str, Any]) -> Hunt:
    """The hunt of a line.  A promise or a test that has a new name gets it."""
    promise = line["promise"]
    for before, now in RENAMED.items():
        promise = promise.replace(before, now)
    return Hunt(mutant, line["schedules"], promise, line["detail"], line["seconds"])


def patch_digest(mutant: Mutant) -> str:
    """Changes when what is planted, or how it is hunted, does."""
    tests = (HOME / mutant.tests.partition("::")[0]).read_text() if mutant.tests else None
    told = (mutant.profile, mutant.changes, mutant.faults, tests)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def source_digest(mutant: Mutant) -> str:
    """Changes when anything does that plays a part in the hunt."""
    rooms = [SOURCE / "pygroups" / room for room in SIMULATED] if mutant.tests is None else [SOURCE]
    digest = hashlib.sha256()
    for file in sorted(file for room in rooms for file in room.rglob("*.py")):
        digest.update(str(file.relative_to(SOURCE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _commit() -> str:
    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, check=False, cwd=HOME).stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "src") else "")


# -- for people


def rows(hunts: Sequence[Hunt]) -> list[list[str]]:
    """A line of the table for each hunt."""
    return [[hunt.mutant.name, hunt.mutant.protocol, _bug(hunt.mutant), *_notice(hunt)] for hunt in hunts]


def _bug(mutant: Mutant) -> str:
    if mutant.hidden_by is None:
        return mutant.bug
    pair = f"pair: {mutant.pair}" if mutant.pair else "unpaired"
    return f"{mutant.bug}. Hidden by {mutant.hidden_by} ({pair})"


def _notice(hunt: Hunt) -> list[str]:
    if not hunt.noticed:
        return ["nobody", f"{hunt.schedules:,} without"]
    if "::" not in hunt.promise:
        return [hunt.promise, f"{hunt.schedules:,}"]
    return [hunt.promise.rpartition("::")[2], f"{hunt.schedules:,} without" if hunt.schedules else "a test"]


def sums(hunts: Sequence[Hunt]) -> str:
    """How many were noticed, and after how many schedules."""
    counts = [hunt.schedules for hunt in hunts if hunt.noticed and "::" not in hunt.promise]
    noticed = sum(hunt.noticed for hunt in hunts)
    text = f"{noticed} of {len(hunts)} noticed"
    return f"{text}; median {statistics.median(counts):g} schedules, worst {max(counts):,}" if counts else text


def table(hunts: Sequence[Hunt]) -> str:
    """Everything for a terminal."""
    lines = [["id", "protocol", "bug", "noticed by", "after"], *rows(hunts)]
    widths = [min(60, max(len(line[column]) for line in lines)) for column in range(5)]
    cut = [[cell if len(cell) <= 60 else cell[:59] + "…" for cell in line] for line in lines]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cut]
    return "\n".join([*shown, sums(hunts)])


# -- the page


def page_table() -> str:
    """The tables of docs/mutants.md: planted bugs with their last result, and those that are not planted."""
    last = {line["mutant"]: line for line in lines()}
    found = [as_hunt(mutant, last.get(mutant.name, NEVER_HUNTED)) for mutant in mutants()]
    text = ["| id | protocol | the bug | noticed by | after schedules |", "|---|---|---|---|---|"]
    text += ["| " + " | ".join(row) + " |" for row in rows(found)]
    text += ["", sums(found) + ".", "", "Not planted:", "", "| id | protocol | the bug | why |", "|---|---|---|---|"]
    for name, entry in not_planted().items():
        text.append(f"| {name} | {entry['protocol']} | {entry['bug']} | {entry['why']} |")
    return "\n".join(text)


def not_planted() -> dict[str, dict[str, str]]:
    """Bugs that the design makes impossible, or whose protocol is not built."""
    return tomllib.loads(NOT_PLANTED.read_text())


def rewrite(page: Path = PAGE) -> None:
    """Put the tables of now in the page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{page_table()}\n\n{END}{after}")
