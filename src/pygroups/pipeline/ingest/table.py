"""A table of histories on disk: which of its files count. A commit exists when its manifest file exists.

A manifest file that ends with WHOLE has the rows of all commits before it, which count no more.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pygroups.pipeline.ingest.layout import FORMAT, MANIFEST, TABLE_FILE, format_of, is_table


class NotATable(ValueError):
    """A folder is no table of histories, or not one that can be read; the text is one sentence for people."""


WHOLE: Final = ".whole.parquet"
_BATCH_ROWS: Final = 1 << 12
_DATA: Final = {"runs": "runs/group=*/day=*", "events": "events/group=*/day=*", "votes": "votes/group=*/day=*"}


class Table:
    """The content of a table at the time of the call, without later commits. Raises NotATable.

    Lists of files are sorted paths; `group` and `day` stand in the names of the folders as Spark escapes them.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not is_table(self.path):
            raise NotATable(
                f"{self.path} is no table of journals, because the folder has no {TABLE_FILE}: give a folder that "
                "`pygroups ingest` has made"
            )
        if format_of(self.path) != FORMAT:
            raise NotATable(
                f"{self.path} is a table of format {format_of(self.path)}; this version reads format {FORMAT} alone: "
                "ingest the journals into a new table"
            )
        self._manifests = _manifests_in(self.path / "manifest")
        self.commits = sorted(self._manifests)

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
        """The files with the state for the next ingest, oldest first. Raises NotATable if a commit lacks its file."""
        files = self._files("carried")
        missing = sorted(set(self.commits) - {Path(file).name.partition("-")[0] for file in files})
        if missing:
            raise NotATable(_not_whole(self.path, [f"carried/{commit}-0.parquet" for commit in missing]))
        return files

    @property
    def groups(self) -> list[str]:
        """The groups that have rows or damaged places, sorted."""
        return sorted(set(self.manifest()["group"].to_pylist()))

    def manifest(self) -> pa.Table:
        """All rows of the manifest, the oldest commit first. Raises NotATable if one of its files is damaged."""
        return self._manifest

    @cached_property
    def _manifest(self) -> pa.Table:
        parts = [read_rows(self._manifests[commit], MANIFEST) for commit in self.commits]
        return pa.concat_tables(parts) if parts else MANIFEST.empty_table()

    def check(self) -> None:
        """Raises NotATable if a file that the manifest names is missing or has lost rows: verdicts would be wrong."""
        there = [*self.runs_files, *self.events_files, *self.votes_files]
        named = pc.unique(pc.list_flatten(self.manifest()["files"])).to_pylist()
        needed = {*named, *(f"names/{Path(name).name}" for name in named)}
        missing = sorted(needed - {os.path.relpath(file, self.path) for file in (*there, *self.names_files)})
        if missing:
            raise NotATable(_not_whole(self.path, missing))
        rows: Counter[str] = Counter()
        for file in there:
            rows[Path(file).name.partition("-")[0]] += count_in(file)
        told = self.manifest().group_by("commit").aggregate([("rows", "sum")])
        for commit, count in zip(told["commit"].to_pylist(), told["rows_sum"].to_pylist(), strict=True):
            if rows[commit] != count:
                raise NotATable(
                    f"{self.path} is incomplete: commit {commit} has {rows[commit]} records, not {count}; "
                    "ingest the journals into a new table"
                )

    def _files(self, folder: str) -> list[str]:
        commits = set(self.commits)
        found = (self.path / ".").glob(f"{folder}/*.parquet")
        return sorted(str(file) for file in found if file.name.partition("-")[0] in commits)


def journals_only(folders: Sequence[Path]) -> list[str]:
    """The folders as they are. Raises NotATable if a table is among them."""
    for folder in folders:
        if is_table(folder):
            raise NotATable(f"{folder} is a table of journals: audit it alone")
    return [str(folder) for folder in folders]


def _not_whole(table: Path, missing: Sequence[str]) -> str:
    more = f", and {len(missing) - 1} more are missing" if len(missing) > 1 else ""
    return f"{table} is incomplete: {missing[0]} is missing{more}; ingest the journals into a new table"


def _manifests_in(folder: Path) -> dict[str, Path]:
    """The manifest files by commit; none if there is no folder. Raises OSError for an unreadable folder."""
    names = sorted(os.listdir(folder)) if folder.exists() else []
    found = {name.partition(".")[0]: folder / name for name in names if name[0].isdigit() and name.endswith(".parquet")}
    first = max((commit for commit, file in found.items() if file.name.endswith(WHOLE)), default="")
    return {commit: file for commit, file in found.items() if commit >= first}


def read_rows(file: Path | str, schema: pa.Schema, **asked: Any) -> pa.Table:
    """The rows of one file of a table; `asked` goes to `pyarrow.parquet.read_table`.

    Raises NotATable if the file is damaged, as a loss of power or a bad disk may leave it.
    """
    try:
        return pq.read_table(file, schema=schema, partitioning=None, page_checksum_verification=True, **asked)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise damaged(file) from error


def read_batches(file: Path | str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of one file of a table in small batches. Raises NotATable if the file is damaged."""
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as content:
            yield from content.iter_batches(_BATCH_ROWS, columns=list(columns))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise damaged(file) from error


def count_in(file: str) -> int:
    """The rows of a file. Raises NotATable if it is damaged; Spark takes an empty file for a table without rows."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise damaged(file) from error


def write_rows(rows: pa.Table, file: Path | str) -> None:
    """Write a file of a table. Each page has a checksum, so readers that verify it detect a flipped bit."""
    pq.write_table(rows, file, write_page_checksum=True)


def damaged(file: Path | str) -> NotATable:
    """The error for a table with a damaged file."""
    return NotATable(f"{file} is damaged: ingest the journals into a new table")
