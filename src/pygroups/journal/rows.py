"""Columns of frequent records: the common format of the fast decoder and the exact one."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .packed import Mask
from .records import INDEX, MONO, RUN_KINDS, TIME, VOTE_KINDS

FREQUENT: Final = (*RUN_KINDS, *VOTE_KINDS)
RUN_NUMBERS: Final = ("first", "count", "bytes", "checksum", "seq", "position", "order", "connection")
"""Integer columns of runs, besides `index`, `time_us` and `mono_us`; null where the kind does not have them."""
TIMES: Final = {"index": INDEX, "time_us": TIME, "mono_us": MONO}
ADDRESSES: Final = ("stream", "peer")


@dataclass
class Numbers:
    """A column of integers. A value has no meaning where `nulls` is set."""

    values: NDArray[np.int64]
    nulls: Mask

    def take(self, rows: NDArray[Any]) -> "Numbers":
        """Some of the rows."""
        return Numbers(self.values[rows], self.nulls[rows])


@dataclass
class Named:
    """A column of names: row i has `names[codes[i]]`. A name can occur twice in `names`; None is null."""

    codes: NDArray[np.int32]
    names: list[Any]

    def take(self, rows: NDArray[Any]) -> "Named":
        """Some of the rows."""
        return Named(self.codes[rows], self.names)


@dataclass
class Rows:
    """Rows of several kinds, in the order of the file. `place` increases over all records of a window.

    `kind` is the number of the kind in RUN_KINDS + VOTE_KINDS. Names: `view` (number, creator), `origin` (name,
    incarnation), `stream` and `peer` (addresses).
    """

    kind: NDArray[np.int8]
    place: NDArray[np.int64]
    numbers: dict[str, Numbers]
    names: dict[str, Named]
    digest: pa.Array | None = None

    def take(self, rows: NDArray[Any]) -> "Rows":
        """Some of the rows."""
        return Rows(
            self.kind[rows],
            self.place[rows],
            {name: column.take(rows) for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.names.items()},
            None if self.digest is None else self.digest.take(pa.array(rows)),
        )


@dataclass
class Others:
    """Rows of a kind that is not frequent, as Arrow columns by name, with `view_number` and `view_creator`."""

    kind: str
    place: NDArray[np.int64]
    columns: dict[str, pa.Array]


def rows_of(kind: str, places: NDArray[np.int64], columns: dict[str, pa.Array]) -> Rows:
    """Arrow columns of a frequent kind, converted to Rows."""
    found = Rows(np.full(len(places), FREQUENT.index(kind), np.int8), places, {}, {})
    missing = pa.nulls(len(places), pa.int64())
    for name in (*TIMES, *(RUN_NUMBERS if kind in RUN_KINDS else ())):
        column = columns.get(name, missing)
        found.numbers[name] = Numbers(
            column.fill_null(0).to_numpy().astype(np.int64), column.is_null().to_numpy(zero_copy_only=False)
        )
    found.names["view"] = _named_pairs(columns["view_number"], columns["view_creator"])
    if kind in VOTE_KINDS:
        found.digest = columns["digest"]
        return found
    found.names["origin"] = _named_pairs(columns["origin"], columns["origin_incarnation"])
    for name in ADDRESSES:
        found.names[name] = _named(columns[name].to_pylist() if name in columns else [None] * len(places))
    return found


def _named_pairs(first: pa.Array, second: pa.Array) -> Named:
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    return _named([None if pair == (None, None) else pair for pair in pairs])


def _named(values: list[Any]) -> Named:
    codes: dict[Any, int] = {}
    return Named(np.array([codes.setdefault(value, len(codes)) for value in values], np.int32), list(codes))


def merged(one: Rows, other: Rows) -> Rows:
    """The rows of both arguments in the order of their places."""
    place = np.concatenate([one.place, other.place])
    digest = None if one.digest is None else pa.concat_arrays([one.digest, other.digest])
    both = Rows(
        np.concatenate([one.kind, other.kind]),
        place,
        {
            name: Numbers(np.concatenate([a.values, b.values]), np.concatenate([a.nulls, b.nulls]))
            for name, a, b in ((name, one.numbers[name], other.numbers[name]) for name in one.numbers)
        },
        {
            name: Named(np.concatenate([a.codes, b.codes + len(a.names)]), [*a.names, *b.names])
            for name, a, b in ((name, one.names[name], other.names[name]) for name in one.names)
        },
        digest,
    )
    return both.take(np.argsort(place, kind="stable"))
