"""Processes of tests/cli/uniform_member.py, and what they printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pygroups.drivers.local_commands import folder_of
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from tests.patience import patience

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = "tests.cli.uniform_member"
SOON: Final = 30.0  # seconds, on a busy machine


class Process:
    """One member in a process of its own.  A process that starts again under a name prints into another file."""

    def __init__(self, group: str, name: str, folder: Path, **options: Any) -> None:
        self.out = folder / f"{name}-{time.monotonic_ns()}.out"
        options = {"journal": str(folder / "journal"), "discovery": f"dir:{folder / 'groups'}"} | options
        told = json.dumps({"group": group, "name": name} | options)
        with self.out.open("wb") as out:
            self.process = subprocess.Popen([sys.executable, "-m", PROGRAM, told], stdout=out, cwd=ROOT)

    def lines(self, kind: str) -> list[list[str]]:
        """What it printed so far: the words after `kind`."""
        text = self.out.read_text()
        whole = text[: text.rfind("\n") + 1]
        return [line.split()[1:] for line in whole.splitlines() if line.startswith(f"{kind} ")]

    @property
    def address(self) -> str:
        return self.lines("address")[0][0]

    def has_view_of(self, *members: str) -> bool:
        """Whether these are the names of its members, in this order."""
        views = self.lines("view")
        return bool(views) and [one.partition("@")[0] for one in views[-1][1:]] == list(members)

    def is_in_view_with(self, *members: str) -> bool:
        """Whether these are the names of its members, in any order."""
        views = self.lines("view")
        return bool(views) and sorted(one.partition("@")[0] for one in views[-1][1:]) == sorted(members)

    @property
    def messages(self) -> list[str]:
        return [" ".join(words) for words in self.lines("message")]

    @property
    def log(self) -> str:
        return "\n".join(" ".join(words) for words in self.lines("log"))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SOON)


def killed_at_once(*processes: Process) -> None:
    """Kill all these processes.  None of them can propose a view without a process that was killed before it."""
    for process in processes:
        os.kill(process.process.pid, signal.SIGSTOP)
    for process in processes:
        os.kill(process.process.pid, signal.SIGKILL)
    for process in processes:
        process.process.wait()


@contextmanager
def group_name() -> Iterator[str]:
    """A name that no other group on this machine has; its folder is removed."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    folder = folder_of(name)
    for path in folder.iterdir() if folder.exists() else ():
        path.unlink()
    if folder.exists():
        folder.rmdir()


def until(condition: object, seconds: float = SOON) -> None:
    end = time.monotonic() + patience(seconds)
    assert callable(condition)
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def rows_of(journal: Path, member: str, kind: str) -> list[dict[str, Any]]:
    """The records of this kind in a member's journal, in their order."""
    segments = [segment for segment in find_segments([journal]) if member in segment.path]
    parts = [part for part in read_segments(segments) if not isinstance(part, Quarantine)]
    rows = [row for part in parts for row in part.to_pylist() if row["kind"] == kind]
    return sorted(rows, key=lambda row: row["index"])


def histories(journal: Path, member: str) -> list[str]:
    """The history ids of the views of a member, in their order."""
    return list(dict.fromkeys(row["history"] for row in rows_of(journal, member, "view")))
