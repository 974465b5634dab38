"""Searches small cases exhaustively, first with planted bugs; see docs/guides/simulator.md.

python -m tests.exhaustive --minutes 20                       all cases, and a line for each in bench/results
python -m tests.exhaustive --case "A sends" --profile fifo    one case, until it is complete; no line
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from .cases import LARGE, NAMED, SMALL
from .explore import Result, Search
from .kept import Kept

PROFILES: Final = ("total", "fifo", "uniform", "uniform-fifo", "total1999")
ENOUGH: Final = 100_000  # distinct states of a long count
WORTH: Final = 5.0  # the fewest seconds for a case
HUNT: Final = 300.0  # the most seconds for one planted bug


def main() -> int:
    """0 if no promise was broken, each planted bug was found, and a long count had enough states; else 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="of the long count")
    parser.add_argument("--case", choices=list(NAMED), help="one case")
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--most", type=int, help="states of the one case")
    parser.add_argument("--seconds", type=float, help="the most seconds for the one case")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes that search")
    parser.add_argument("--kept", type=Path, help="a file of completed classes: the one case goes on behind them")
    parser.add_argument("--json", action="store_true", help="print the result of the one case as JSON")
    options = parser.parse_args()
    if options.case is None:
        return long_count(options.minutes, PROFILES if options.profile is None else (options.profile,), options.jobs)
    profile = options.profile or "total"
    kept = None if options.kept is None else Kept(options.kept, options.case, profile)
    search = Search(NAMED[options.case], profile, options.jobs, kept)
    found = search.run(options.most, options.seconds, _quiet if options.json else _tell)
    if options.json:
        print(msgspec.json.encode(found).decode())
    else:
        _show(found)
    return int(found.violation is not None)


def long_count(minutes: float, profiles: tuple[str, ...], jobs: int) -> int:
    """Find the planted bugs, then search all cases.  The large ones share the time that the small ones leave."""
    from . import planted, results  # they import the mutants and the benchmarks

    for hunted in planted.KNOWN:
        found = planted.hunt(hunted, HUNT)
        results.append(found, planted=hunted.bug)
        _tell(f"planted bug {hunted.bug}: {found.line()}")
        if found.violation is None or found.violation.promise != hunted.promise:
            _tell(f"the planted bug {hunted.bug} breaks {hunted.promise}, and the search did not find that")
            return 1
    began, all_found = time.monotonic(), []
    cases = [case for cases in (SMALL, LARGE) for case in cases]
    searches = [(case, profile) for case in cases for profile in profiles if case.concerns(profile)]
    for done, (case, profile) in enumerate(searches):
        left = began + 60 * minutes - time.monotonic()
        seconds = left / (4 if case in SMALL else len(searches) - done)
        if seconds < WORTH:
            _tell(f"{case.name}, {profile}: not searched, because too little time is left")
            continue
        found = Search(case, profile, jobs).run(seconds=seconds, tell=_tell)
        results.append(found)
        all_found.append(found)
        _show(found)
        if found.violation is not None:
            return 1
    return _sum_up(all_found, time.monotonic() - began)


def _sum_up(found: list[Result], seconds: float) -> int:
    states = sum(one.states for one in found)
    complete = sum(one.complete for one in found)
    ends = sum(one.ends for one in found)
    _tell(
        f"{states:,} distinct states in {seconds:.0f} s, {ends:,} ends judged, {complete} of {len(found)} cases "
        "complete: no promise was broken"
    )
    if states < ENOUGH:
        _tell(f"that is fewer than {ENOUGH:,} states: give it more MINUTES")
    return int(states < ENOUGH)


def _show(found: Result) -> None:
    _tell(found.line())
    if found.violation is not None:
        _tell("\n".join(found.violation.history))


def _tell(line: str) -> None:
    print(line, flush=True)


def _quiet(line: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
