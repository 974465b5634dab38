"""Spark's reader of journals: it decodes only the columns and kinds of a query, and splits large files into tasks."""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
    IsNotNull,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from pygroups.journal.ranges import header_of, split
from pygroups.journal.reader import Range, Segment
from pygroups.journal.schema import KINDS
from pygroups.pipeline.source_request import Request
from pygroups.pipeline.source_rows import ROWS, rows_of_history

_PARTITION_BYTES: Final = 128 << 20  # a task that reads more is too much to repeat
_RANGE_BYTES_MIN: Final = 1 << 20  # a smaller range costs more than it spares
_RANGE_BYTES_MAX: Final = 32 << 20  # a task holds one range in memory


@dataclass
class Share(InputPartition):
    """The byte ranges that one task reads."""

    ranges: list[Range]


class _Overriding:
    """A `pushFilters` of our own that looks inherited.

    Spark refuses a reader that overrides the method while its setting `spark.sql.python.filterPushdown.enabled` is off,
    as it is by default, and asks by comparing `__func__`. With the setting off Spark does not call it.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[list[Filter]], list[Filter]]) -> None:
        self._push = push

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        return self._push(filters)


class JournalsReader(DataSourceReader):
    """Reads segments in few large partitions; each row of a partition has the columns of `schema`."""

    def __init__(self, request: Request, segments: list[Segment], schema: StructType) -> None:
        self.table = request.table
        self.columns = schema.names
        self.segments = segments
        self.kinds: frozenset[str] | None = None
        self._wanted = request.partitions
        self.pushFilters = _Overriding(self._take_over)  # type: ignore[method-assign]

    def _take_over(self, filters: list[Filter]) -> list[Filter]:
        """Apply the filters on `kind`, `group` and `member`; returns the filters that Spark has to judge."""
        rest = []
        for one in filters:
            column, test = _test_of(one)
            if test is None or not self._use(column, test):
                rest.append(one)
        return rest

    def _use(self, column: str, test: Callable[[str], bool]) -> bool:
        """Use the test of a filter.  Returns whether no row that the test refuses will come."""
        if column == "kind" and self.table == "records":
            self.kinds = frozenset(kind for kind in (KINDS if self.kinds is None else self.kinds) if test(kind))
            return True
        if column not in ("group", "member"):
            return False
        if self.table == "quarantine":  # its rows have the names of folders, because the header may be damaged
            self.segments = [segment for segment in self.segments if test(getattr(segment, column))]
            return True
        if self.table in ("records", "messages"):
            headers = [(segment, header_of(segment)) for segment in self.segments]
            self.segments = [segment for segment, header in headers if header and test(getattr(header, column))]
            return True
        return False

    def partitions(self) -> Sequence[InputPartition]:
        total = sum(segment.size for segment in self.segments)
        number = self._wanted or max(2 * (os.cpu_count() or 1), -(-total // _PARTITION_BYTES))
        if self.table in ROWS:
            most = min(max(-(-total // number), _RANGE_BYTES_MIN), _RANGE_BYTES_MAX)
            pieces = [[piece] for segment in self.segments for piece in _split(segment, most)]
        else:  # a row depends on the rows before it, so the rows of one incarnation stay together
            lives: dict[Path, list[Range]] = {}
            for segment in self.segments:
                lives.setdefault(Path(segment.path).parent, []).append(Range(segment, 0, segment.size))
            pieces = list(lives.values())
        return [Share(ranges) for ranges in shared_out(pieces, number)] or [Share([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        gc.disable()  # a worker decodes millions of small lists without a cycle among them; looking costs a third
        try:
            if self.table in ROWS:
                yield from ROWS[self.table](partition.ranges, self.columns, self.kinds)
            else:
                lives = sorted({str(Path(place.segment.path).parent) for place in partition.ranges})
                yield from rows_of_history(lives, self.table, self.columns)
        finally:
            gc.enable()


def _split(segment: Segment, most: int) -> list[Range]:
    try:
        return split(segment, most)
    except OSError:
        return [Range(segment, 0, segment.size)]  # the task reports the error, as a row of `quarantine`


def shared_out(pieces: Iterable[list[Range]], number: int) -> list[list[Range]]:
    """The pieces in at most `number` lists of about equal size, the largest first into the emptiest."""
    sized = [(sum(place.end - place.begin for place in piece), piece) for piece in pieces]
    shares: list[tuple[int, list[Range]]] = [(0, []) for _ in range(min(number, len(sized)))]
    for size, piece in sorted(sized, key=lambda one: (-one[0], one[1][0].segment.path, one[1][0].begin)):
        least = min(range(len(shares)), key=lambda at: shares[at][0])
        held, share = shares[least]
        shares[least] = (held + size, [*share, *piece])
    return [share for _, share in shares]


def _test_of(condition: Filter) -> tuple[str, Callable[[str], bool] | None]:
    """The column of a condition, and its test of a text that is not null; None if the test is not known."""
    column, values = ".".join(getattr(condition, "attribute", ())), _values(condition)
    match condition:
        case EqualTo() | In() if values is not None:
            return column, lambda text: text in values
        case Not(child):
            column, test = _test_of(child)
            return column, None if test is None else lambda text: not test(text)
        case IsNotNull():  # the columns that are asked for a text always have one
            return column, lambda text: True
        case StringStartsWith(_, value):
            return column, lambda text: text.startswith(value)
        case StringEndsWith(_, value):
            return column, lambda text: text.endswith(value)
        case StringContains(_, value):
            return column, lambda text: value in text
    return column, None


def _values(condition: Filter) -> frozenset[Any] | None:
    """The values of EqualTo or In; None if a null is among them, with which no comparison is true."""
    found = condition.value if isinstance(condition, In) else (getattr(condition, "value", None),)
    return None if None in found else frozenset(found)


def reader_of(request: Request, segments: list[Segment], schema: StructType) -> DataSourceReader:
    """The reader of `segments` for a query of a request; `schema` has columns of its table only."""
    return JournalsReader(request, segments, schema)
