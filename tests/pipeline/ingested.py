"""What the tests of ingest share: journals that grow, and the rows of a table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter
from pygroups.pipeline.ingest import Table

DAY_US = 86_400_000_000
NOON_US = 1_700_000_000_000_000


def life_of(root: Path, name: str = "A", group: str = "orders", profile: str = "total", segment: int = 1 << 20) -> Any:
    """The journal of one life; `write` appends records that happen a second after those before."""
    more = {"host": "here", "boot_id": "boot", "services": services_of_v1(profile)}
    return JournalWriter(root, group, name, "3f2c", profile, **more, segment_bytes=segment)  # type: ignore[arg-type]


def run(origin: str, first: int, count: int = 1, **more: object) -> dict[str, object]:
    """The fields of a run."""
    label = {"origin": origin, "origin_incarnation": "3f2c", "first": first, "count": count}
    return label | {"bytes": 100 * count, "checksum": first * 7} | more


def drawn(root: Path, seed: int, profile: str) -> None:
    """Two lives' journals in small segments: runs in and out of turn, gaps, views with and without a given state."""
    rng = random.Random(seed)
    for name in "AB":
        journal = life_of(root, name, profile=profile, segment=900)
        view, next_numbers = None, dict.fromkeys("ABC", 1)
        for at in range(120):
            records: list[Any] = []
            for _ in range(rng.choice((1, 1, 2, 5))):
                origin = rng.choice("ABC")
                first = next_numbers[origin] + rng.choice((0, 0, 0, 0, 0, 1, -1))
                count = rng.randrange(1, 4)
                draw = rng.random()
                if draw < 0.06:
                    view = (at + 1, f"{name}@3f2c")
                    given = {f"{one}@3f2c": rng.randrange(9) for one in rng.sample("ABC", 2)}
                    fields: dict[str, object] = {"members": ["A@3f2c"], "history": f"h{at // 40}"}
                    records.append(("view", view, fields | {"digest": given if rng.random() < 0.3 else None}))
                elif draw < 0.12:
                    records.append(
                        ("gap", view, {"origin": origin, "origin_incarnation": "3f2c", "first": first, "count": 2})
                    )
                    next_numbers[origin] = first + 2
                elif draw < 0.2:
                    records.append((rng.choice(("stable", "purge")), view, {"digest": {"A@3f2c": at, "B@3f2c": 2}}))
                elif draw < 0.3:
                    records.append(("unicast_send", view, run(name, first, peer="C@3f2c", connection=2)))
                else:
                    records.append(("deliver", view, run(origin, first, count, stream="A@3f2c", seq=at, position=at)))
                    next_numbers[origin] = first + count
            journal.write(records, NOON_US + at * DAY_US // 50, at)
        journal.close()


def stages(root: Path, seed: int, count: int) -> list[dict[Path, bytes]]:
    """The journals below `root` as they may have been at `count` moments, the last one now."""
    rng = random.Random(seed)
    lives = [sorted(folder.glob("*.journal")) for folder in sorted(root.glob("*/*@*"))]
    files = [(file, file.read_bytes()) for life in lives for file in life]
    found = []
    shares = [[*sorted(rng.random() for _ in range(count - 1)), 1.0] for _ in lives]
    for stage in range(count):
        there = {}
        for life, share in zip(lives, shares, strict=True):
            mine = [(file, data) for file, data in files if file in life]
            left = round(share[stage] * sum(len(data) for _, data in mine))
            for file, data in mine:
                if left > 0:
                    there[file] = data[:left]
                left -= len(data)
        found.append(there)
    return found


def put(files: dict[Path, bytes]) -> None:
    """Write the files."""
    for file, data in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def rows_of(table: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of `runs`, `events` and `votes`, by life and index."""
    found = {}
    opened = Table(table)
    for name in ("runs", "events", "votes"):
        files = getattr(opened, f"{name}_files")
        rows: list[dict[str, Any]] = []
        if files:
            rows = ds.dataset(files, partition_base_dir=str(table), partitioning="hive").to_table().to_pylist()
        found[name] = sorted(({**row, "table": name} for row in rows), key=lambda row: (row["life"], row["index"]))
    return found


def names_of(table: Path) -> set[tuple[Any, ...]]:
    """The names that keys stand for."""
    rows = ds.dataset(Table(table).names_files).to_table().to_pylist()
    return {tuple(row.values()) for row in rows}
