"""Processes start at the same moment and end in one view, again and again.

`python -m tests.e2e.starts --starts 20 --processes 20` does it so often; `make starts` calls it.
"""

from __future__ import annotations

import argparse
import os
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e.group import Group, Worker
from tests.patience import patience

WAYS: Final = ("folder", "list", "multicast")
SECONDS_MAX: Final = 5.0  # from the start of the last process to the one view
VIEWS_MAX: Final = 6  # the views of the first member until all are in one


class Started(NamedTuple):
    """The outcome of one start."""

    seconds: float  # from the start of the last process until all were in one view
    views: int  # of the member that was there first


def start_at_once(
    folder: Path, *, prepared: bool, profile: str = "total", way: str = "folder", processes: int = 8
) -> Started:
    """Start processes that find each other in this way, until they are in one view that only one of them founded.

    `prepared`: all have imported what they need and begin to look for each other in the same millisecond; otherwise
    they begin one after the other, as fast as the machine starts processes.
    """
    wishes = wishes_for(way, processes)
    with Group(folder, journal=None, profile=profile) as group:
        workers = [group.prepare() for _ in range(processes)]
        if prepared:
            group.until("the processes are ready", lambda: all("ready" in worker.reports for worker in workers))
        for number, (worker, wish) in enumerate(zip(workers, wishes, strict=True)):
            group.go(worker, f"m{number:02}", **wish)
        group.until("all have begun", lambda: all("ready" in worker.reports for worker in workers))
        began = time.monotonic()
        group.until("all have joined", lambda: all(worker.address for worker in workers))
        group.settle()
        seconds = time.monotonic() - began
        views = one_history(workers)
        group.leave()
    return Started(seconds, views)


def one_history(workers: Sequence[Worker]) -> int:
    """How many views the founder had.  AssertionError if another process founded a group too."""
    founders = [worker for worker in workers if worker.views[0]["members"] == [worker.address]]
    assert len(founders) == 1, f"more than one founded the group, or nobody: {[one.name for one in founders]}"
    views: dict[tuple[int, str], list[str]] = {}
    for worker in workers:
        for view in worker.views:
            assert views.setdefault(tuple(view["id"]), view["members"]) == view["members"]
    return len(founders[0].views)


def wishes_for(way: str, processes: int) -> list[dict[str, Any]]:
    """The options of each process."""
    if way == "folder":
        return [{} for _ in range(processes)]
    if way == "multicast":
        return [{"discovery": f"udp:239.77.2.{os.getpid() % 250 + 1}:{free_ports(1)[0]}"}] * processes
    binds = [f"127.0.0.1:{port}" for port in free_ports(processes)]
    return [{"discovery": ",".join(binds), "bind": bind} for bind in binds]


def free_ports(count: int) -> list[int]:
    """Ports of loopback at which no process listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main() -> None:
    """The long one."""
    parser = argparse.ArgumentParser(description="start processes at once, again and again")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--processes", type=int, default=20)
    given = parser.parse_args()
    for number in range(given.starts):
        way, prepared = WAYS[number % len(WAYS)], bool(number % 2)
        with tempfile.TemporaryDirectory(prefix="pygroups-starts-") as folder:
            started = start_at_once(Path(folder), prepared=prepared, way=way, processes=given.processes)
        print(
            f"start {number + 1} ({way}): one view of {given.processes} after {started.seconds:.1f} s, "
            f"{started.views} views",
            flush=True,
        )
        assert started.seconds < patience(SECONDS_MAX), f"more than {patience(SECONDS_MAX):.0f} s"
        assert started.views <= patience(VIEWS_MAX), f"more than {patience(VIEWS_MAX):.0f} views"


if __name__ == "__main__":
    main()
