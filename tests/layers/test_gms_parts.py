"""The parts of GMS: the list in layer.py, the imports and the note say the same."""

from __future__ import annotations

import ast
import re

from pygroups.layers.gms import layer
from tests.layers.gms_drawn import NOTE

FOLDER = NOTE.parents[2] / "src" / "pygroups" / "layers" / "gms"
LISTED = re.findall(r"^(\w+)\.py  +\S", layer.__doc__ or "", re.MULTILINE)


def imports_of(part: str) -> list[str]:
    """The other parts that a part imports, wherever in the file."""
    tree = ast.parse((FOLDER / f"{part}.py").read_text())
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
    return [name for node in relative for name in ([node.module] if node.module else [one.name for one in node.names])]


def test_the_list_has_each_part_once() -> None:
    files = {file.stem for file in FOLDER.glob("*.py")} - {"__init__", "primary"}
    assert sorted(LISTED) == sorted(files)


def test_each_part_uses_only_those_that_are_listed_before_it() -> None:
    order = [*LISTED, "primary"]
    found = [(part, used) for part in order for used in imports_of(part) if order.index(used) >= order.index(part)]
    assert found == []
    assert "attempt" in imports_of("view_change"), "imports are seen at all"


def test_the_note_says_of_each_part_what_it_answers() -> None:
    rows = re.findall(r"^\| [^|]+\? \| `(\w+)\.py` \|$", NOTE.read_text(), re.MULTILINE)
    assert rows == [*LISTED, "primary"]
