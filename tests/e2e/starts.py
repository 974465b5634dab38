"""Eight processes start at the same moment and end in one view, again and again.

`python -m tests.e2e.starts --starts 20` does it so often; `make starts` calls it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.e2e.group import Group

NAMES: Final = "ABCDEFGH"


def start_at_once(folder: Path, *, prepared: bool) -> float:
    """Seconds until eight members were in one view that only one of them founded.

    `prepared`: all have imported what they need and begin to look for each other in the same millisecond; otherwise
    they begin one after the other, as fast as the machine starts processes.
    """
    with Group(folder, journal=None) as group:
        workers = [group.prepare() for _ in NAMES]
        if prepared:
            group.until("eight processes are ready", lambda: all("ready" in worker.reports for worker in workers))
        began = time.monotonic()
        for worker, name in zip(workers, NAMES, strict=True):
            group.go(worker, name)
        group.until("all have joined", lambda: all(worker.address for worker in workers))
        group.settle()
        seconds = time.monotonic() - began
        founders = {worker.name for worker in workers if worker.views[0]["members"] == [worker.address]}
        assert len(founders) == 1, f"more than one founded the group, or nobody: {founders}"
        views: dict[tuple[int, str], list[str]] = {}
        for worker in workers:
            for view in worker.views:
                assert views.setdefault(tuple(view["id"]), view["members"]) == view["members"]
        group.leave()
    return seconds


def main() -> None:
    """The long one."""
    parser = argparse.ArgumentParser(description="start eight processes at once, again and again")
    parser.add_argument("--starts", type=int, default=20)
    for number in range(parser.parse_args().starts):
        with tempfile.TemporaryDirectory(prefix="pygroups-starts-") as folder:
            seconds = start_at_once(Path(folder), prepared=bool(number % 2))
        print(f"start {number + 1}: one view of {len(NAMES)} after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
