"""What a stream keeps between two batches, in the folder `state` of its output.

`progress.json` is written last in a batch, whole or not at all.  It names the table with the records that are still
needed and the last commit in it: whatever a killed batch left beside them is removed.
"""

import fcntl
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pygroups.pipeline.ingest import Table

_PROGRESS: Final = "progress.json"
_SCRATCH: Final = "scratch"
MEMBERS_TOLD: Final = 4


class NotThisStream(ValueError):
    """A folder has the tables of another stream; the text is one sentence for people."""


@dataclass
class Standing:
    """The counts of one promise in one group and history, over all batches."""

    promise: str
    group: str
    history: str | None
    judged: int = 0
    broken: int = 0
    skipped: dict[str, int] = field(default_factory=dict)


@dataclass
class LeftOpen:
    """The views of a group that are not judged yet, because members that may go on are in them.

    `members` are the first MEMBERS_TOLD of these members, `more` the number of the others.
    """

    views: int
    members: list[str]
    more: int
    newest_us: int


@dataclass
class Progress:
    """The end of the last batch.

    - batch: its number, -1 before the first; checkpoint: the id of the stream in Spark's checkpoint
    - table: the folder of the table below `state`, commit: the last one in it
    - closed: keys of the views that are judged, of which the table still has records
    - marks: by the key of a sender, the greatest number of a message whose delivery the table has no more
    - standings: the counts so far; services: by group and profile
    - records, bytes: read so far; newest_us: the time of the newest record; late: records of views that were judged
      before these records were read
    - open_views: those with a record in the table that are not closed yet
    - left_open: their number by group, with some members whose end nothing proves, and the time of their newest record
    """

    batch: int = -1
    checkpoint: str = ""
    table: str = ""
    commit: str = ""
    closed: list[int] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    standings: list[Standing] = field(default_factory=list)
    services: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0
    newest_us: int = 0
    late: int = 0
    open_views: int = 0
    left_open: dict[str, LeftOpen] = field(default_factory=dict)

    def standing(self, promise: str, group: str, history: str | None) -> Standing:
        """The counts of a promise, made if there are none yet."""
        for one in self.standings:
            if (one.promise, one.group, one.history) == (promise, group, history):
                return one
        self.standings.append(Standing(promise, group, history))
        return self.standings[-1]


class State:
    """The folder `state`."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "state"
        self._lock: int | None = None

    def lock(self) -> None:
        """Keep other streams out.  Raises NotThisStream if one is there; the end of a process, by a kill too, ends
        it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.unlock()
            raise NotThisStream(
                f"another stream writes to {self.folder.parent}: end it, or give --out another folder"
            ) from error

    def unlock(self) -> None:
        """Let other streams in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def scratch(self) -> Path:
        """For the tables of one batch."""
        return self.folder / _SCRATCH

    def progress(self) -> Progress:
        """As the last whole batch left it."""
        file = self.folder / _PROGRESS
        if not file.exists():
            return Progress()
        told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        told["marks"] = {int(key): mark for key, mark in told["marks"].items()}
        told["standings"] = [Standing(**one) for one in told["standings"]]
        told["left_open"] = {group: LeftOpen(**one) for group, one in told.get("left_open", {}).items()}
        return Progress(**told)

    def begin(self, progress: Progress) -> Path:
        """Remove what a killed batch left, and return the folder of the table, which may not exist yet."""
        name = progress.table or "table-0"
        self.folder.mkdir(parents=True, exist_ok=True)
        for entry in self.folder.iterdir():
            if entry.is_dir() and (entry.name != name or not progress.table):
                shutil.rmtree(entry)
        if progress.table:
            for commit in Table(self.folder / name).commits:
                if commit > progress.commit:
                    (self.folder / name / "manifest" / f"{commit}.parquet").unlink()
        return self.folder / name

    def end(self, progress: Progress) -> None:
        """The batch is whole now.  The tables of earlier ones go."""
        beside = self.folder / f".{_PROGRESS}"
        beside.write_text(json.dumps(asdict(progress)), encoding="utf-8")
        os.replace(beside, self.folder / _PROGRESS)
        for entry in self.folder.iterdir():
            if entry.is_dir() and entry.name != progress.table:
                shutil.rmtree(entry)
