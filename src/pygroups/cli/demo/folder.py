"""The folder of a demo's results.  A list there names the files of a demo; a later demo replaces only these files."""

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
BESIDE: Final = ("", "-wal", "-shm", "-journal")  # the endings of the files that SQLite keeps for an open database


class DemoFolder:
    """The paths of the results in `folder`."""

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
        """Remove the files of an earlier demo.  Raises UsageError if other files have these names, or if the folder
        cannot be written."""
        own = [self.replica(name).name + beside for name in names for beside in BESIDE] + [RESULT, REPORT]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_earlier()
            for name in own:
                if (self.folder / name).exists():
                    raise UsageError(
                        f"{self.folder / name} does not come from an earlier demo: move it, or choose another --out"
                    )
            if any(self.group_journals.glob("*/*.journal")):
                raise UsageError(
                    f"{self.group_journals} does not come from an earlier demo: move it, or choose another --out"
                )
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
        """Remove the journals of the demo's group, and no other files."""
        for life in self.group_journals.glob("*@*"):
            for file in [*life.glob("*.journal"), life / "lock"]:
                file.unlink(missing_ok=True)
            _remove_if_empty(life)
        _remove_if_empty(self.group_journals)
        _remove_if_empty(self.journal)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the folder does not exist, or other files are in it
        folder.rmdir()
