"""How a commit begins and ends: one writer at a time, unfinished files go, and whole files appear in one rename."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pygroups.pipeline.ingest.layout import LOCK_FILE
from pygroups.pipeline.ingest.table import WHOLE, NotATable, Table

_TABLES: Final = ("runs", "events", "votes", "names", "carried", "manifest")


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Allow one ingest at a time. The end of a process, even by a kill, releases the lock."""
    lock = os.open(out / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotATable(f"another ingest writes to the table {out}: try again after it has ended") from error
        yield
    finally:
        os.close(lock)


def cleaned(out: Path, *, begun: bool = False) -> Table:
    """The table, after the files went of commits that have no manifest, or that a compaction has replaced.

    With `begun` the whole files of the next compaction stay.
    """
    table = Table(out)
    commits = {*table.commits, *([commit_behind(table)] if begun else [])}
    for name in _TABLES:
        for file in (out / name).rglob("*.parquet*"):
            if file.name.partition("-")[0].partition(".")[0] not in commits:
                file.unlink()
    for file in (out / "manifest").glob(f"*{WHOLE}"):
        os.replace(file, file.with_name(file.name.removesuffix(WHOLE) + ".parquet"))
    return Table(out)


def next_commit(table: Table) -> str:
    """Microseconds since 1970, or more if the clock is not later than the last commit."""
    return max(f"{time.time_ns() // 1000:016d}", commit_behind(table))


def commit_behind(table: Table) -> str:
    """The first commit that the table can have next."""
    return f"{int(table.commits[-1]) + 1 if table.commits else 0:016d}"


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically: after a crash the file is complete or absent."""
    beside = unfinished(path)
    write(beside)
    os.replace(beside, path)


def unfinished(path: Path) -> Path:
    """The path of an incomplete file."""
    return path.with_name(f".{path.name}")
