"""A table of histories on disk: which of its files count. A commit exists when its manifest file exists."""

import os
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pygroups.pipeline.ingest.layout import FORMAT, MANIFEST, TABLE_FILE, format_of, is_table


class NotATable(ValueError):
    """A folder is no table of histories, or not one that can be read; the text is one sentence for people."""


_DATA: Final = {"runs": "runs/group=*/day=*", "events": "events/group=*/day=*", "votes": "votes/group=*/day=*"}


class Table:
    """What a table holds as of now: commits that come later are not seen. Raises NotATable.

    Lists of files are sorted paths; `group` and `day` stand in the names of the folders as Spark escapes them.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not is_table(self.path):
            raise NotATable(f"{self.path} is no table of journals: it has no {TABLE_FILE}")
        if format_of(self.path) != FORMAT:
            raise NotATable(f"{self.path} is a table of format {format_of(self.path)}, and only {FORMAT} is known")
        self.commits = _commits_in(self.path / "manifest")

    @property
    def runs_files(self) -> list[str]:
        """The files of `runs`."""
        return self._files(_DATA["runs"])

    @property
    def events_files(self) -> list[str]:
        """The files of `events`."""
        return self._files(_DATA["events"])

    @property
    def votes_files(self) -> list[str]:
        """The files of `votes`."""
        return self._files(_DATA["votes"])

    @property
    def names_files(self) -> list[str]:
        """The files of `names`."""
        return self._files("names")

    @property
    def carried_files(self) -> list[str]:
        """What ingest keeps for its next call, the oldest commit first."""
        return self._files("carried")

    @property
    def groups(self) -> list[str]:
        """The groups that have rows or damaged places, sorted."""
        return sorted(set(self.manifest()["group"].to_pylist()))

    def manifest(self) -> pa.Table:
        """All rows of the manifest, the oldest commit first. Raises NotATable if one of its files is damaged."""
        return self._manifest

    @cached_property
    def _manifest(self) -> pa.Table:
        parts = [read_rows(self.path / "manifest" / f"{name}.parquet", MANIFEST) for name in self.commits]
        return pa.concat_tables(parts) if parts else MANIFEST.empty_table()

    def check(self) -> None:
        """Raises NotATable if a file of rows that the manifest names is not there: verdicts would be wrong."""
        there = {*self.runs_files, *self.events_files, *self.votes_files}
        named = pc.unique(pc.list_flatten(self.manifest()["files"])).to_pylist()
        missing = sorted(name for name in named if str(self.path / name) not in there)
        if missing:
            more = f", and {len(missing) - 1} more are missing" if len(missing) > 1 else ""
            raise NotATable(f"{self.path} is not whole: {missing[0]} is missing{more}; ingest its journals anew")

    def _files(self, folder: str) -> list[str]:
        commits = set(self.commits)
        found = (self.path / ".").glob(f"{folder}/*.parquet")
        return sorted(str(file) for file in found if file.name.partition("-")[0] in commits)


def _commits_in(folder: Path) -> list[str]:
    """Sorted; none if the folder is not made yet. Raises OSError if it cannot be read."""
    names = os.listdir(folder) if folder.exists() else []
    return sorted(name.removesuffix(".parquet") for name in names if name[0].isdigit() and name.endswith(".parquet"))


def read_rows(file: Path | str, schema: pa.Schema) -> pa.Table:
    """The rows of one file of a table. Raises NotATable if it is damaged, as a loss of power may leave it."""
    try:
        return pq.read_table(file, schema=schema)
    except pa.ArrowInvalid as error:
        raise NotATable(f"{file} is damaged ({str(error).partition('.')[0]}): ingest the journals anew") from error
