"""Makes few files of the many that frequent ingests leave: one commit with all rows, one file for each group and day.

The files of the new commit are written beside the old ones.  Its manifest replaces all others in one rename, and then
the old files go.  A compaction that was killed leaves the table as it was.  The next one goes on with the whole files
that it finds.
"""

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pygroups.pipeline.ingest.commits import cleaned, commit_behind, locked, write_whole
from pygroups.pipeline.ingest.known import CARRIED, known_to
from pygroups.pipeline.ingest.layout import MANIFEST, NAMES, ROWS
from pygroups.pipeline.ingest.sink import ROW_GROUP, writer_of
from pygroups.pipeline.ingest.table import WHOLE, Table, count_in, read_rows, write_rows

ROWS_MAX: Final = 1 << 20
"""Files are merged up to this number of rows, which are in memory; a larger file stays as it is."""

_CHOSEN: Final[dict[str, Callable[[list[int]], int]]] = {
    "first_index": itemgetter(0),
    "last_index": itemgetter(-1),
    "wrong_index": min,
    "first_us": min,
    "last_us": max,
    "last_mono_us": max,
}

Row = dict[str, Any]


@dataclass
class Compacted:
    """The numbers of Parquet files of a table before and after."""

    files_before: int
    files_after: int
    seconds: float = 0.0


def compact(out: Path, *, progress: Callable[[int, int], None] = lambda done, of: None) -> Compacted:
    """Merge the files of a table without changing a row. `progress` is called with the files done and with all.

    Raises NotATable if `out` is no whole table or another ingest writes to it, OSError for a file that cannot be read
    or written. After an error the table is as before.
    """
    began = time.perf_counter()
    Table(out)  # a folder that is no table gets no lock
    with locked(out):
        table = cleaned(out, begun=True)
        table.check()
        before = _files_of(table)
        shares = list(_shares(table))
        if len(table.commits) > 1 or len(shares) < len(_data_of(table)):
            _Compaction(table).run(shares, lambda done: progress(done, len(before)))
        result = Compacted(len(before), len(_files_of(Table(out))))
    result.seconds = time.perf_counter() - began
    return result


def _data_of(table: Table) -> list[str]:
    return [*table.runs_files, *table.events_files, *table.votes_files]


def _files_of(table: Table) -> list[str]:
    return [*_data_of(table), *table.names_files, *table.carried_files, *table.commits]


def _shares(table: Table) -> Iterator[list[str]]:
    """Files that become one: the next ones of a folder, up to ROWS_MAX rows. The oldest come first."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for file in _data_of(table):
        folders[Path(file).parent].append(file)
    for files in folders.values():
        held, rows = list[str](), 0
        for file in files:
            count = count_in(file)
            if held and rows + count > ROWS_MAX:
                yield held
                held, rows = [], 0
            held.append(file)
            rows += count
        yield held


class _Compaction:
    """One commit with the rows of all commits of a table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.commit = commit_behind(table)
        self.renamed: dict[str, str] = {}
        self.written: list[Path] = []

    def run(self, shares: Sequence[list[str]], progress: Callable[[int], None]) -> None:
        numbers: dict[Path, int] = defaultdict(int)
        for share in shares:
            folder = Path(share[0]).parent
            self._merge(share, folder / self._file(numbers[folder]))
            numbers[folder] += 1
            progress(len(self.renamed))
        self._write_rest(max(numbers.values(), default=1))
        manifest = self.table.path / "manifest"
        self._write(_manifest(self.table, self.commit, self.renamed), manifest / f"{self.commit}{WHOLE}")
        _on_disk({manifest})
        cleaned(self.table.path)

    def _file(self, number: int) -> str:
        return f"{self.commit}-{number}.parquet"

    def _merge(self, files: Sequence[str], into: Path) -> None:
        """One file with the rows of these; a file alone only gets its new name."""
        name = os.path.relpath(into, self.table.path)
        self.renamed.update((os.path.relpath(file, self.table.path), name) for file in files)
        self.written.append(into)
        if into.exists() and count_in(str(into)) == sum(map(count_in, files)):
            return  # an earlier compaction of the same commits, which was killed, wrote it
        if len(files) == 1:
            write_whole(into, lambda path: _linked(files[0], path))
            return
        schema = ROWS[Path(name).parts[0]]
        rows = pa.concat_tables([read_rows(file, schema) for file in files])
        rows = rows.take(pc.sort_indices(rows, [("life", "ascending")]))  # stable: a life's records stay in their order

        def write(path: Path) -> None:
            with writer_of(path, schema) as writer:
                writer.write_table(rows, row_group_size=ROW_GROUP)

        write_whole(into, write)

    def _write_rest(self, numbers: int) -> None:
        """The names and the state for the next ingest, each of them once. `Table.check` wants a file of names for each
        number."""
        table = self.table
        names = pa.concat_tables([NAMES.empty_table(), *(read_rows(file, NAMES) for file in table.names_files)])
        names = names.group_by(NAMES.names).aggregate([]).cast(NAMES)
        for number in range(numbers):
            self._write(names if number == 0 else NAMES.empty_table(), table.path / "names" / self._file(number))
        carried = [state.row(life, sorted(state.segments)) for life, state in sorted(known_to(table).items())]
        self._write(pa.Table.from_pylist(carried, CARRIED), table.path / "carried" / self._file(0))
        _on_disk({*self.written, *(file.parent for file in self.written)})

    def _write(self, rows: pa.Table, into: Path) -> None:
        write_whole(into, lambda path: write_rows(rows, path))
        self.written.append(into)


def _linked(file: str, path: Path) -> None:
    try:
        os.link(file, path)
    except OSError:  # not every file system has links
        shutil.copyfile(file, path)


def _on_disk(paths: Iterable[Path]) -> None:
    """Wait until a loss of power cannot take these files and names any more: the old files go next."""
    for path in sorted(paths):
        place = os.open(path, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _manifest(table: Table, commit: str, renamed: dict[str, str]) -> pa.Table:
    """The rows of the manifest for the new files, those of ranges that touch as one."""
    rows: list[Row] = []
    place = ("group", "address", "segment", "file")
    for row in sorted(table.manifest().to_pylist(), key=lambda row: (*map(row.__getitem__, place), row["begin"])):
        row |= {"commit": commit, "files": sorted({renamed[file] for file in row["files"] or ()})}
        if rows and _touch(rows[-1], row):
            _join(rows[-1], row)
        else:
            rows.append(row)
    return pa.Table.from_pylist(rows, MANIFEST)


def _touch(one: Row, other: Row) -> bool:
    """Whether a range goes on where another one ends, and neither has a damaged place."""
    same = all(one[name] == other[name] for name in ("group", "life", "file", "segment", "profile", "host", "boot_id"))
    return same and one["end"] == other["begin"] and one["damage"] is None and other["damage"] is None


def _join(row: Row, more: Row) -> None:
    """Add a range to the one in front of it."""
    row |= {"end": more["end"], "rows": row["rows"] + more["rows"], "bytes": row["bytes"] + more["bytes"]}
    row["services"] = more["services"] if row["services"] is None else row["services"]
    for name in ("files", "kinds"):
        row[name] = sorted({*(row[name] or ()), *(more[name] or ())})
    for name, chosen in _CHOSEN.items():
        known = [value for value in (row[name], more[name]) if value is not None]
        row[name] = chosen(known) if known else None
