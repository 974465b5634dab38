"""The work of one worker: it reads the new bytes of some incarnations, writes their rows, and returns a summary."""

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pygroups.journal.columns import Decoded, read_columns
from pygroups.journal.frames import Damage, Header
from pygroups.journal.reader import index_of
from pygroups.journal.rows import FREQUENT
from pygroups.journal.scan import stop_at
from pygroups.pipeline.ingest.known import SegmentState, fingerprint
from pygroups.pipeline.ingest.names import Keys
from pygroups.pipeline.ingest.plan import LifeParts, Part, goes_on
from pygroups.pipeline.ingest.shape import Shape
from pygroups.pipeline.ingest.sink import Sink
from pygroups.pipeline.ingest.table import write_rows


@dataclass
class IngestedRows:
    """Rows for the manifest, rows with the carried state, and CPU seconds."""

    manifest: list[dict[str, Any]] = field(default_factory=list)
    carried: list[dict[str, Any]] = field(default_factory=list)
    cpu_seconds: float = 0.0


@dataclass
class _Range:
    """The findings in the new bytes of one segment; the bytes were read up to `end`.

    `told`: the last finding was the damage at `damaged_at`, and the beginning of the frame behind it is not known yet.
    """

    end: int
    rows: int = 0
    first_index: int | None = None
    last_index: int | None = None
    wrong_index: int | None = None
    first_us: int | None = None
    last_us: int | None = None
    last_mono_us: int | None = None
    kinds: set[str] = field(default_factory=set)
    damage: list[Damage] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    damaged_at: int = 0
    told: bool = False


def work_on(
    out: Path,
    commit: str,
    number: int,
    lives: Sequence[LifeParts],
    progress: Callable[[int], None] = lambda done: None,
) -> IngestedRows:
    """Write the data files `<commit>-<number>.parquet` for these incarnations, which stand in the order of their
    groups.

    `progress` is called with the number of bytes done.
    """
    used = time.process_time()
    done = IngestedRows()
    sink = Sink(out, commit, number)
    names: list[pa.Table] = []
    keys: Keys | None = None
    ready = 0
    collecting = gc.isenabled()
    gc.disable()  # lists by the thousand without a cycle among them: looking costs more than it finds
    try:
        for life in lives:
            if keys is None or keys.group != life.group:
                names += [keys.table()] if keys is not None else []
                keys = Keys(life.group)
            _Life(commit, life, keys, sink).read(done)
            ready += life.size
            progress(ready)
    finally:
        if collecting:
            gc.enable()
        sink.close()
    if keys is not None:
        (out / "names").mkdir(exist_ok=True)
        write_rows(pa.concat_tables([*names, keys.table()]), out / "names" / f"{commit}-{number}.parquet")
    done.cpu_seconds = time.process_time() - used
    return done


_TOLD: Final = (
    *("end", "rows", "first_index", "last_index", "wrong_index"),
    *("first_us", "last_us", "last_mono_us"),
)
"""What the manifest says of a range as it was found."""


class _Life:
    """Reads the new parts of one incarnation, one after the other."""

    def __init__(self, commit: str, life: LifeParts, keys: Keys, sink: Sink) -> None:
        self.commit = commit
        self.life = life
        self.state = life.state
        self.keys = keys
        self.sink = sink
        keys.life((life.member, life.incarnation))

    def read(self, done: IngestedRows) -> None:
        for part in self.life.parts:
            done.manifest += self._part(part)
        touched = [part.number for part in self.life.parts if part.number in self.state.segments]
        done.carried.append(self.state.row(self.life.life, touched))

    def _part(self, part: Part) -> list[dict[str, Any]]:
        segment, path = part.segment, part.segment.path
        state = SegmentState(part.number, path, part.begin, segment.size, 0, part.history)
        state.followed = segment.following is not None
        if isinstance(part.header, Damage):
            found = self._without_header(part, part.header, state)
        else:
            try:
                found = self._frames(part, part.header, state)
            except FileNotFoundError:  # its writer has removed it; the next segment shows the loss by its index
                return []
        state.end = found.end
        if found.end:
            with contextlib.suppress(FileNotFoundError):  # removed while it was read: no later ingest compares it
                state.print = fingerprint(path, found.end)
        self.state.segments[part.number] = state
        return self._told(part, found)

    def _without_header(self, part: Part, damage: Damage, state: SegmentState) -> _Range:
        if damage.torn and goes_on(part.segment, self.state.next_index or None, lossy=damage.lossy):
            return _Range(part.begin)
        state.unreadable = not damage.torn
        return _Range(part.begin if damage.torn else part.segment.size, damage=[damage])

    def _frames(self, part: Part, header: Header, state: SegmentState) -> _Range:
        found = _Range(part.segment.size)
        self.state.numbering.gossip = "GOSSIP" in header.services
        shape = Shape(self.keys, self.life.life, part.history, self.state.numbering, self.state.counting)
        last: list[Any] | None = None
        for window in read_columns(part.segment.path, part.first, part.segment.size):
            found.told = False
            if isinstance(window, Decoded):
                found.damage += window.damage
                found.files |= self.sink.add(self.life.group, shape.tables(window))
                last = window.last if window.last is not None else last
                self._count(window, found)
                _note(window, found)
            else:
                self._damaged(window, part, found, last)
        if found.told:
            found.end = found.damaged_at
        state.history, state.told = shape.history, found.told
        return found

    def _damaged(self, place: Damage, part: Part, found: _Range, last: list[Any] | None) -> None:
        """Note a damaged place. The caller continues behind it, if a whole frame follows."""
        if place.lossy:
            found.told, found.damaged_at = True, place.offset
        elif place.torn:
            found.end = place.offset
        else:
            found.told, found.damaged_at = stop_at(part.segment.path, place.offset) != part.segment.size, place.offset
        known = part.told and place.offset == part.begin
        expected = self._expected(part, last)
        if not known and not (place.torn and goes_on(part.segment, expected, lossy=place.lossy)):
            found.damage.append(place)

    def _expected(self, part: Part, last: list[Any] | None) -> int | None:
        """The first index of the next segment; None if it is unknown."""
        if last is not None:
            index = index_of(last[-1]) if last else None
            return None if index is None else index + 1
        return self.state.next_index if part.begin else None

    def _count(self, window: Decoded, found: _Range) -> None:
        """Check the indices of all records. From a missing or repeated index on, the journal is not trusted."""
        indices = _indices(window)
        if not len(indices):
            return
        found.rows += len(indices)
        if found.first_index is None:
            found.first_index = int(indices[0])
        found.last_index = int(indices[-1])
        tops = np.maximum.accumulate(np.concatenate([[self.state.next_index], indices + 1]))
        expected = tops[:-1]
        wrong = indices != expected
        if wrong.any():
            least = int(np.minimum(indices, expected)[wrong].min())
            found.wrong_index = least if found.wrong_index is None else min(least, found.wrong_index)
        self.state.next_index = int(tops[-1])

    def _told(self, part: Part, found: _Range) -> list[dict[str, Any]]:
        """The rows of the manifest for the findings; empty without findings."""
        life, header = self.life, part.header
        about = {
            "commit": self.commit,
            "group": life.group,
            "member": life.member,
            "incarnation": life.incarnation,
            **{name: getattr(header, name, None) for name in ("profile", "host", "boot_id", "services")},
            "life": life.life,
            "address": f"{life.member}@{life.incarnation}",
            "file": part.segment.path,
            "segment": part.number,
        }
        whole = {name: getattr(found, name) for name in _TOLD}
        files = {"bytes": found.end - part.begin, "files": sorted(found.files), "kinds": sorted(found.kinds)}
        told = [about | whole | files | {"begin": part.begin}]
        for number, place in enumerate(sorted(found.damage, key=lambda place: place.offset)):
            damage = {"damage": place.reason, "damage_offset": place.offset}
            if number == 0:
                told[0] |= damage
            else:
                nothing = {"rows": 0, "bytes": 0, "files": [], "kinds": []}
                told.append(about | damage | nothing | {"begin": place.offset, "end": place.offset})
        return told if found.damage or found.end > part.begin else []


def _note(window: Decoded, found: _Range) -> None:
    """The kinds of a window's records, and their first and last moments."""
    found.kinds.update(other.kind for other in window.others)
    for rows in (window.runs, window.votes):
        found.kinds.update(FREQUENT[kind] for kind in np.unique(rows.kind).tolist())
    times, monotonic = _column(window, "time_us"), _column(window, "mono_us")
    if len(times):
        first, last = int(times.min()), int(times.max())
        found.first_us = first if found.first_us is None else min(first, found.first_us)
        found.last_us = last if found.last_us is None else max(last, found.last_us)
    if len(monotonic):
        found.last_mono_us = max(int(monotonic.max()), found.last_mono_us or 0)


def _column(window: Decoded, name: str) -> NDArray[np.int64]:
    """The values of a column, for the records that have one."""
    columns = [rows.numbers[name] for rows in (window.runs, window.votes)]
    others = [other.columns[name].drop_null().to_numpy() for other in window.others]
    return np.concatenate([*(column.values[~column.nulls] for column in columns), *others])


def _indices(window: Decoded) -> NDArray[np.int64]:
    """The indices of all records in the order of the file; -1 for none."""
    places, indices = [window.runs.place, window.votes.place], []
    for rows in (window.runs, window.votes):
        column = rows.numbers["index"]
        indices.append(np.where(column.nulls, -1, column.values))
    for other in window.others:
        places.append(other.place)
        indices.append(other.columns["index"].fill_null(-1).to_numpy())
    return np.concatenate(indices)[np.argsort(np.concatenate(places), kind="stable")]
