"""docs/journal.md says what the code does: the same columns and fields, and a reader that reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pygroups.journal.schema import COLUMNS, FIELDS
from pygroups.journal.writer import JournalWriter
from tests.patience import patience

DOCUMENT = (Path(__file__).parents[2] / "docs" / "journal.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    section = DOCUMENT.partition(f"## {heading}")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")]


def test_the_columns_are_those_of_the_schema() -> None:
    assert [(name.strip("`"), ddl.strip("`")) for name, ddl, _ in rows("Columns")] == list(COLUMNS.items())


def test_the_fields_of_every_kind_are_those_of_the_schema() -> None:
    told = {kind.strip("`"): tuple(re.findall(r"`(\w+)`", fields)) for kind, _, fields in rows("Kinds")}
    assert told == FIELDS


def test_the_reader_in_the_document_reads_a_journal(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(import struct.*?)```", DOCUMENT, re.DOTALL)
    assert len(program.splitlines()) <= 32
    journal = JournalWriter(tmp_path, "orders", "A", "3f2c", "total", host="h", boot_id="b", segment_bytes=100)
    journal.write([("start", None, {"gauges": {"bound_us": 5}})], 1, 1)
    journal.write([("leave", (4, "B@77"), {"reason": "asked"}), ("stop", (4, "B@77"), {})], 2, 2)
    journal.close()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=True,
    )
    assert done.stdout.splitlines() == [
        "orders A@3f2c 0 start None [{'bound_us': 5}, None]",
        "orders A@3f2c 1 leave [4, 'B@77'] ['asked', None]",
        "orders A@3f2c 2 stop [4, 'B@77'] [None, None, None]",
    ]
