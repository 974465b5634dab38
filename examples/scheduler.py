"""A job that exactly one of several processes runs, each second, with a fencing token for its store.

Start it in three shells, and end with `kill -9` the one that runs the job: another one goes on at once.

    python examples/scheduler.py a
    python examples/scheduler.py b
    python examples/scheduler.py c

A process that was stopped (Ctrl-Z) runs the job once more when it goes on, before it hears that another one leads.  The
store refuses it, because its token is lower than that of the new leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sys
from pathlib import Path
from typing import Any

from pygroups.blocks import Blocks, Grant, run_on_one

STORE = Path("scheduler-out") / "runs"


class Refused(Exception):
    """Another process leads."""


def store(file: Path, token: int, text: str) -> None:
    """Append a line, unless a leader with a higher token has written before.  A database does this with
    `UPDATE ... WHERE token <= :token`."""
    with file.open("a+") as lines:
        fcntl.flock(lines, fcntl.LOCK_EX)
        lines.seek(0)
        last = [*lines][-1:] or ["0"]
        if int(last[0].split()[0]) > token:
            raise Refused(f"token {token} is old")
        lines.write(f"{token} {text}\n")


async def schedule(name: str, file: Path, pause: float = 1.0, **options: Any) -> None:
    """Run the job while this process leads, to the end of the task."""
    file.parent.mkdir(exist_ok=True)

    async def job(grant: Grant) -> None:
        while True:
            try:
                store(file, grant.token, name)
            except Refused as reason:
                print(f"{name}: {reason}", flush=True)
            else:
                print(f"{name} has run the job, with token {grant.token}", flush=True)
            await asyncio.sleep(pause)

    folder = {"journal": file.parent / "journal"}  # a process that starts again answers for its former life
    async with Blocks("scheduler", profile="uniform", name=name, rejoin=True, **folder, **options) as blocks:
        await run_on_one(blocks, "job", job)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(schedule(sys.argv[1], STORE))
