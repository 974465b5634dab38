"""The folder of a demo's results, and which files there are its own: a later demo replaces those and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pygroups.core.errors import UsageError

GROUP: Final = "demo"
LIST: Final = ".pygroups-demo"  # the names of the files that a demo made, one a line
RESULT: Final = "demo.json"
REPORT: Final = "report.html"
BESIDE: Final = ("", "-wal", "-shm", "-journal")  # what SQLite keeps beside a file while it is open


class DemoFolder:
    """`folder`, made if it is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.journal = self.folder / "journal"
        self.group_journals = self.journal / GROUP
        self.result = self.folder / RESULT
        self.report = self.folder / REPORT

    def replica(self, name: str) -> Path:
        """The table of the member `name`."""
        return self.folder / f"{name}.sqlite"

    def prepare(self, names: Iterable[str]) -> None:
        """Remove what an earlier demo left; UsageError when something else is in the way, or the folder is not ours."""
        own = [self.replica(name).name + beside for name in names for beside in BESIDE] + [RESULT, REPORT]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_earlier()
            for name in own:
                if (self.folder / name).exists():
                    raise UsageError(
                        f"{self.folder / name} is not of an earlier demo: move it, or choose another --out"
                    )
            if any(self.group_journals.glob("*/*.journal")):
                raise UsageError(f"{self.group_journals} is not of an earlier demo: move it, or choose another --out")
            (self.folder / LIST).write_text("".join(f"{name}\n" for name in own))
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"the demo cannot write to {self.folder}: {why}; choose another --out") from error

    def _remove_earlier(self) -> None:
        made = self.folder / LIST
        if not made.is_file():
            return
        for name in made.read_text().splitlines():
            if name == Path(name).name:
                (self.folder / name).unlink(missing_ok=True)
        self._remove_journals()
        made.unlink()

    def _remove_journals(self) -> None:
        """Those of the demo's group, as they are laid out; anything else in there stays."""
        for life in self.group_journals.glob("*@*"):
            for file in [*life.glob("*.journal"), life / "lock"]:
                file.unlink(missing_ok=True)
            _remove_if_empty(life)
        _remove_if_empty(self.group_journals)
        _remove_if_empty(self.journal)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is not there, or it is not empty: then it stays
        folder.rmdir()
