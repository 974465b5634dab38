"""The table in README.md says where each scenario is played: what it names exists, and nothing is left out of it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.house.scenarios import IDS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ROW = re.compile(r"^\| (?P<id>[A-Z0-9-]+) \| (?P<what>[^|]+) \| (?P<where>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(rf"(?<![a-zA-Z])(?:{IDS})_\d\d(?!\d)", re.IGNORECASE)  # in the name of a test: an id


def rows(text: str) -> list[tuple[str, str]]:
    """Id and place of each row."""
    return [(row["id"], row["where"]) for row in ROW.finditer(text)]


@cache
def names_in(file: Path) -> list[str]:
    return [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]


def offences(text: str) -> list[str]:
    """What the table names and is not there, and what is there and it does not name."""
    found: list[str] = []
    ids = [id for id, _ in rows(text)]
    found += [f"{id} stands twice" for id in dict.fromkeys(ids) if ids.count(id) > 1]
    for id, where in rows(text):
        places = re.findall(r"`([^`]+)`", where)
        if not places and not where.startswith("comes with "):
            found.append(f"{id} has neither a test nor a reason")
        for place in places:
            found += [f"{id}: there is no {place}"] if not exists(place) else []
    for file in sorted(HERE.glob("test_*.py")):
        for name in names_in(file):
            for id in map(str.upper, NAMED.findall(name)):
                row = dict(rows(text)).get(id.replace("_", "-"), "")
                if f"{file.name}::{name}`" not in row:
                    found.append(f"{file.name}::{name} is not in the row of {id}")
    return found


def exists(place: str) -> bool:
    name, _, test = place.partition("::")
    file = ROOT / name if name.startswith("tests/") else HERE / name
    return file.is_file() and (not test or test in names_in(file))


def test_the_table_and_the_tests_say_the_same() -> None:
    text = (HERE / "README.md").read_text()
    assert len(rows(text)) >= 130
    assert offences(text) == []


def test_what_is_wrong_with_a_table_is_seen() -> None:
    text = (HERE / "README.md").read_text()
    assert offences(text.replace("test_sequencer.py::test_SEQ_01`", "test_sequencer.py::test_SEQ_00`")) == [
        "SEQ-01: there is no test_sequencer.py::test_SEQ_00",
        "test_sequencer.py::test_SEQ_01 is not in the row of SEQ_01",
    ]
    assert "PB-07 stands twice" in offences(text.replace("| PB-08 |", "| PB-07 |"))
    assert "TOT-01 has neither a test nor a reason" in offences(text.replace("comes with profile total1999", "soon"))
    played = "`test_primary.py::test_prim_02_three_of_four_leave_at_once`"
    assert offences(text.replace(played, "comes with the birth of a group")) == [
        "test_primary.py::test_prim_02_three_of_four_leave_at_once is not in the row of PRIM_02"
    ]
