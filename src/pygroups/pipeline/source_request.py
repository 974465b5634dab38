"""The request of a user of the data source: paths, a table, columns. Every refusal is one sentence."""

import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql.types import StructType

from pygroups.journal.reader import NotAJournal, Segment, find_segments
from pygroups.pipeline.schemas import (
    EVENTS,
    MANIFEST,
    MESSAGES,
    NAMES,
    ORDERED,
    QUARANTINE,
    RANGES,
    RECORDS,
    RUNS,
    VOTES,
)

TABLES: Final[dict[str, StructType]] = {
    "records": RECORDS,  # one row per record
    "messages": MESSAGES,  # one row per delivered message; the payload if the journal keeps payloads
    "ordered": ORDERED,  # one row per message of a group, in the total order; a stream alone
    "quarantine": QUARANTINE,  # one row per place that could not be read
    "ranges": RANGES,  # one row per range of bytes, which is not decoded: what `pygroups stream` reads
    # The tables of a history, as `ingest` writes them:
    "runs": RUNS,
    "events": EVENTS,
    "votes": VOTES,
    "names": NAMES,
    "manifest": MANIFEST,
}
STREAM_ALONE: Final = "ordered"
_COLUMNS_SHOWN: Final = 12
_OPTIONS: Final = ("path", "paths", "table", "partitions", "maxbytespertrigger", "failondataloss")  # in lower case
_OF_STREAMS: Final = {"maxbytespertrigger": "maxBytesPerTrigger", "failondataloss": "failOnDataLoss"}
_OF_A_CATALOG: Final = "provider"  # Spark passes it of a table, and with it all that its catalog knows
_NO_TABLES: Final = (
    "Spark passes no options when it reads a table of its catalog, so the folder of the journals would be lost: use "
    "CREATE TEMPORARY VIEW name USING pygroups OPTIONS (path 'DIR')"
)


class WrongRequest(ValueError):
    """A request names a table, a column, a folder or an option that the data source does not have.  The text is one
    sentence for people."""


@dataclass(frozen=True)
class Request:
    """A table of the journals in `paths`; `partitions` is the number of tasks that was asked for, 0 for none.

    Of streams: at most `bytes_per_trigger` bytes in a batch, 0 for all; and whether a stream fails when records were
    removed that it has not read.
    """

    table: str
    paths: list[str]
    partitions: int
    bytes_per_trigger: int = 0
    fails_on_loss: bool = True

    def segments(self) -> list[Segment]:
        """The files to read. Raises NotAJournal for a path or a pattern without journals."""
        return find_segments([folder for path in self.paths for folder in _folders(path)])

    def schema_of(self, columns: Sequence[str] | None) -> StructType:
        """The table's schema, or that of some of its columns. Raises WrongRequest for a column that the table lacks."""
        schema = TABLES[self.table]
        if columns is None:
            return schema
        for name in columns:
            self._check_name(name)
        if not columns:
            raise WrongRequest("the request has no column: name at least one column")
        return StructType([schema[name] for name in columns])

    def check(self, schema: StructType) -> None:
        """Raises WrongRequest unless `schema` has columns of the table only, each once, with its type."""
        if not schema.fields:
            raise WrongRequest("the request has no column: name at least one column")
        for field in schema.fields:
            self._check_name(field.name)
            known = TABLES[self.table][field.name].dataType
            if field.dataType != known:
                told, wanted = known.simpleString(), field.dataType.simpleString()
                raise WrongRequest(
                    f"column {field.name!r} of table {self.table!r} has the type {told}, not {wanted}: "
                    f"give the type {told}"
                )
            if not field.nullable:
                raise WrongRequest(f"column {field.name!r} can be null: leave NOT NULL out")
        if len(set(schema.names)) < len(schema.names):
            raise WrongRequest("the schema names a column twice: name each column once")

    def _check_name(self, name: str) -> None:
        names = TABLES[self.table].names
        if name not in names:
            more = ", ..." if len(names) > _COLUMNS_SHOWN else ""
            shown = ", ".join(names[:_COLUMNS_SHOWN]) + more
            raise WrongRequest(f"table {self.table!r} has no column {name!r}; the columns are {shown}")


def request_of(options: Mapping[str, str], paths: Sequence[str] | None = None) -> Request:
    """The request in the options of a read; Spark gives one path in `path`, several in `paths`. Raises WrongRequest."""
    _check_options(options)
    if paths is None:
        paths = [*json.loads(options.get("paths", "[]")), *([options["path"]] if options.get("path") else [])]
    if not paths:
        raise WrongRequest(
            'give the folder of the journals: .load(DIR), .load([DIR, DIR]) or .option("path", DIR); of a table of '
            f"Spark's catalog {_NO_TABLES[len('Spark ') :]}"
        )
    table = options.get("table", "records")
    if table not in TABLES:
        raise WrongRequest(f"there is no table {table!r}: use {', '.join(list(TABLES)[:-1])} or {list(TABLES)[-1]}")
    told = options.get("partitions", "0")
    if not (told.isascii() and told.isdigit()):
        raise WrongRequest(f"option 'partitions' must be a whole number of tasks, and not {told!r}")
    given = {name.lower(): value for name, value in options.items()}
    most, fails = given.get("maxbytespertrigger", "0"), given.get("failondataloss", "true").lower()
    if not (most.isascii() and most.isdigit()):
        raise WrongRequest(f"option 'maxBytesPerTrigger' must be a whole number of bytes, and not {most!r}")
    if fails not in ("true", "false"):
        raise WrongRequest(f"option 'failOnDataLoss' must be true or false, and not {fails!r}")
    return Request(table, list(paths), int(told), int(most), fails == "true")


def _check_options(options: Mapping[str, str]) -> None:
    """Raises WrongRequest for an option that is not known, because a misspelt one would change the answer silently."""
    names = [name.lower() for name in options]
    if _OF_A_CATALOG in names:
        raise WrongRequest(_NO_TABLES)
    for name in names:
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, 1)
            meant = f"did you mean {_OF_STREAMS.get(near[0], near[0])!r}? " if near else ""
            raise WrongRequest(
                f"option {name!r} is not known: {meant}the options are path, table and partitions, and of streams "
                f"{' and '.join(_OF_STREAMS.values())}"
            )


def _folders(path: str) -> list[str]:
    """The folders that a path or a pattern means. Raises NotAJournal."""
    scheme, place = urlsplit(path).scheme, path
    if "://" in path or path.startswith("file:/"):
        if scheme != "file":
            raise NotAJournal(f"{path} is no folder of this machine: give the path of a folder of journals")
        place = unquote(urlsplit(path).path)
    if Path(place).exists() or not glob.has_magic(place):
        return [place]
    found = sorted(glob.glob(place, recursive=True))
    if not found:
        raise NotAJournal(f"no folder matches the pattern {path}: give a pattern of folders with journals")
    return found
