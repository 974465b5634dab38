"""What ingest costs: `python -m bench.ingest [--records N] [--per-frame 1.3 4 64]`.

Writes journals of N run records (`histories.py`), with so many records a frame, and prints for each the processor
seconds of `ingest` into a table, in microseconds a record, and those of reading the same journals record by record into
Arrow batches, which is what an audit did before and only half of what ingest does. Everything runs in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import bench.common  # noqa: F401  the tree that this file lies in comes first
from bench.histories import Shape
from bench.written import write_journals
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.pipeline.ingest import Table, ingest


def measured(root: Path, records: int, per_frame: float, repeat: int) -> dict[str, Any]:
    """Processor microseconds a record, the least of `repeat` times, for one number of records a frame."""
    journals = root / f"journals-{per_frame}"
    write_journals(Shape(records=records), journals, per_frame)
    ingested, rows, size, table = [], 0, 0, root
    for time_ in range(repeat):
        table = root / f"table-{per_frame}-{time_}"
        result = ingest([journals], table, jobs=1)
        ingested.append(result.cpu_seconds)
        rows, size = result.rows, result.bytes
    used = time.process_time()
    read = sum(part.num_rows for part in read_segments(find_segments([journals])) if not isinstance(part, Quarantine))
    used = time.process_time() - used
    assert read == rows
    parquet = sum(file.stat().st_size for file in table.rglob("*.parquet"))
    return {
        "records": rows,
        "per_frame": per_frame,
        "journal_bytes_a_record": round(size / rows, 1),
        "parquet_bytes_a_record": round(parquet / rows, 1),
        "ingest_us_a_record": [round(seconds / rows * 1e6, 2) for seconds in sorted(ingested)],
        "record_by_record_us_a_record": round(used / rows * 1e6, 2),
        "files": len(Table(table).runs_files),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--per-frame", type=float, nargs="+", default=[1.3, 4, 64])
    parser.add_argument("--repeat", type=int, default=3)
    call = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        measured(root / "warm", 20_000, 4, 1)
        for per_frame in call.per_frame:
            told = measured(root, call.records, per_frame, call.repeat)
            told["load_average"] = round(os.getloadavg()[0], 1)
            told["most_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
