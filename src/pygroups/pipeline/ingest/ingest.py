"""Appends to a table of histories what journals hold beyond what the table knows."""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pygroups.journal.frames import Header, walk
from pygroups.journal.reader import Quarantine, Segment, find_segments, read_segments
from pygroups.pipeline.ingest.keys import history_key, life_key, view_key
from pygroups.pipeline.ingest.layout import (
    EVENT_COLUMNS,
    EVENTS,
    FORMAT,
    MANIFEST,
    NAMES,
    RUN_KINDS,
    RUNS,
    TABLE_FILE,
    VOTE_KINDS,
    VOTES,
)
from pygroups.pipeline.ingest.table import Table
from pygroups.pipeline.verdict import Quarantined

Row = dict[str, Any]


@dataclass
class IngestResult:
    """What one call did. `commit` is None if there was nothing new; `skipped` counts ranges that were known already."""

    commit: str | None = None
    files: int = 0
    bytes: int = 0
    rows: int = 0
    skipped: int = 0
    damaged: list[Quarantined] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def ingest(
    paths: Iterable[str | Path],
    out: Path,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> IngestResult:
    """Append the journals in `paths` to the table `out`, which is made if it is missing."""
    began, used = time.perf_counter(), time.process_time()
    segments = find_segments(paths)
    for folder in ("manifest", "carried"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    (out / TABLE_FILE).write_text(json.dumps({"format": FORMAT}))
    known = {row["file"]: row["end"] for row in Table(out).manifest().to_pylist()}
    result = IngestResult(files=len(segments))
    commit = f"{time.time_ns() // 1000:016d}"
    writing = _Commit(out, commit)
    of = sum(segment.size for segment in segments)
    done = 0
    lives: dict[int, _Life] = {}
    for segment in segments:
        if segment.path in known:
            result.skipped += 1
        else:
            writing.take(segment, lives, result)
        done += segment.size
        progress(done, of)
    if writing.manifest:
        writing.end()
        result.commit = commit
    result.seconds, result.cpu_seconds = time.perf_counter() - began, time.process_time() - used
    return result


@dataclass
class _Life:
    next_index: int = 0
    given: bool = False
    numbers: dict[int, int] = field(default_factory=dict)


class _Commit:
    def __init__(self, out: Path, commit: str) -> None:
        self.out = out
        self.commit = commit
        self.manifest: list[Row] = []
        self.rows: dict[tuple[str, str, str], list[Row]] = {}
        self.names: dict[tuple[Any, ...], None] = {}

    def take(self, segment: Segment, lives: dict[int, _Life], result: IngestResult) -> None:
        rows, places = _read(segment)
        group, member, incarnation, profile, host, boot_id = _identity(segment)
        address = f"{member}@{incarnation}"
        key = self._life(group, address)
        life = lives.setdefault(key, _Life())
        wrong = None
        files: set[str] = set()
        for row in rows:
            if row["index"] != life.next_index and wrong is None:
                wrong = min(row["index"], life.next_index)
            life.next_index = max(life.next_index, row["index"] + 1)
            files.add(self._row(group, key, profile, life, row))
        told = {
            "commit": self.commit,
            "group": group,
            "member": member,
            "incarnation": incarnation,
            "profile": profile,
            "host": host,
            "boot_id": boot_id,
            "life": key,
            "address": address,
            "file": segment.path,
            "segment": int(Path(segment.path).stem),
            "bytes": segment.size,
        }
        for at, place in enumerate(places or [None]):
            whole, offset = at == 0, place.offset if place else None
            self.manifest.append(
                {
                    **told,
                    "begin": 0 if whole else offset,
                    "end": segment.size if whole else offset,
                    "first_index": rows[0]["index"] if rows and whole else None,
                    "last_index": rows[-1]["index"] if rows and whole else None,
                    "rows": len(rows) if whole else 0,
                    "wrong_index": wrong if whole else None,
                    "damage": place.reason if place else None,
                    "damage_offset": offset,
                    "bytes": segment.size if whole else 0,
                    "files": sorted(files) if whole else [],
                    "kinds": sorted({row["kind"] for row in rows}) if whole else [],
                    **(_times(rows) if rows and whole else {}),
                }
            )
            if place:
                result.damaged.append(Quarantined(segment.path, place.offset, place.reason))
        result.bytes += segment.size
        result.rows += len(rows)

    def _row(self, group: str, life_key_: int, profile: str | None, life: _Life, row: Row) -> str:
        kind = row["kind"]
        out = {name: row[name] for name in ("index", "time_us", "mono_us")} | {"life": life_key_, "kind": kind}
        number, creator = row["view_number"], row["view_creator"]
        out["view"] = self._view(group, number, creator)
        out["history"] = self._name(group, "history", history_key, row["history"])
        sender = None
        if row["origin"] is not None:
            sender = self._life(group, f"{row['origin']}@{row['origin_incarnation']}")
        if kind == "view" and row["digest"] is not None:
            life.given = True
            life.numbers = {life_key(group, name): mark + 1 for name, mark in row["digest"]}
        expected = None
        if kind in ("deliver", "gap") and sender is not None:
            expected = life.numbers.get(sender, None if profile == "gossip" and not life.given else 1)
            if row["first"] is not None and row["count"] is not None:
                life.numbers[sender] = max(expected or 0, row["first"] + row["count"])
        table = "events"
        if kind in RUN_KINDS:
            table = "runs"
            out |= {name: row[name] for name in ("first", "count", "bytes", "checksum", "seq", "position", "order")}
            out |= {"kind": RUN_KINDS[kind], "sender": sender, "expected": expected, "connection": row["connection"]}
            out |= {name: row[name] and self._life(group, row[name]) for name in ("stream", "peer")}
        elif kind in VOTE_KINDS:
            table = "votes"
            out["digest"] = row["digest"]
        else:
            out |= {name: row[name] for name in EVENT_COLUMNS}
            out |= {"view_number": number, "view_creator": creator, "sender": sender, "expected": expected}
            out["previous"] = self._view(group, row["previous_number"], row["previous_creator"])
        day = time.strftime("%Y-%m-%d", time.gmtime(row["time_us"] / 1e6))
        self.rows.setdefault((table, group, day), []).append(out)
        return f"{table}/group={_escaped(group)}/day={day}/{self.commit}-0.parquet"

    def _view(self, group: str, number: int | None, creator: str | None) -> int | None:
        if number is None:
            return None
        key = view_key(group, number, creator)
        self.names[group, "view", key, f"{number}:{creator}", number, creator] = None
        return key

    def _life(self, group: str, address: str) -> int:
        key = life_key(group, address)
        self.names[group, "life", key, address, None, None] = None
        return key

    def _name(self, group: str, kind: str, key_of: Callable[[str], int], name: str | None) -> int | None:
        if name is None:
            return None
        key = key_of(name)
        self.names[group, kind, key, name, None, None] = None
        return key

    def end(self) -> None:
        schemas = {"runs": RUNS, "events": EVENTS, "votes": VOTES}
        for (table, group, day), rows in self.rows.items():
            rows.sort(key=lambda row: (row["life"], row["index"]))
            folder = self.out / table / f"group={_escaped(group)}" / f"day={day}"
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows, schemas[table]), folder / f"{self.commit}-0.parquet")
        (self.out / "names").mkdir(exist_ok=True)
        names = [dict(zip(NAMES.names, name, strict=True)) for name in self.names]
        pq.write_table(pa.Table.from_pylist(names, NAMES), self.out / "names" / f"{self.commit}-0.parquet")
        manifest = self.out / "manifest" / f"{self.commit}.parquet"
        pq.write_table(pa.Table.from_pylist(self.manifest, MANIFEST), manifest.with_suffix(".tmp"))
        os.replace(manifest.with_suffix(".tmp"), manifest)


def _times(rows: list[Row]) -> Row:
    times = [row["time_us"] for row in rows]
    return {"first_us": min(times), "last_us": max(times), "last_mono_us": max(row["mono_us"] for row in rows)}


_ESCAPED = frozenset([*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^"])


def _escaped(group: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in group)


def _read(segment: Segment) -> tuple[list[Row], list[Quarantine]]:
    rows: list[Row] = []
    places: list[Quarantine] = []
    for part in read_segments([segment]):
        if isinstance(part, Quarantine):
            places.append(part)
        else:
            rows += part.to_pylist()
    rows.sort(key=lambda row: row["index"])
    return rows, places


def _identity(segment: Segment) -> tuple[str, str, str, str | None, str | None, str | None]:
    header = next(iter(walk(Path(segment.path).read_bytes())))
    if isinstance(header, Header):
        return header.group, header.member, header.incarnation, header.profile, header.host, header.boot_id
    return segment.group, segment.member, segment.incarnation, None, None, None
