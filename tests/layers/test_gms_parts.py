"""The parts of GMS: the list in layer.py, the imports and the note say the same."""

from __future__ import annotations

import ast
import re

from pygroups.layers.gms import layer
from tests.layers.gms_drawn import NOTE

FOLDER = NOTE.parents[2] / "src" / "pygroups" / "layers" / "gms"
LISTED = re.findall(r"^([\w/]+)\.py  +\S", layer.__doc__ or "", re.MULTILINE)
PRIMARY = "majority/primary"


def imports_of(part: str) -> list[str]:
    """The other parts that a part imports, wherever in the file."""
    tree, found = ast.parse((FOLDER / f"{part}.py").read_text()), []
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level):
        folder = (FOLDER / part).parents[node.level - 1].joinpath(*(node.module or "").split("."))
        files = [folder, *(folder / one.name for one in node.names)]
        found += [file.relative_to(FOLDER).as_posix() for file in files if file.is_relative_to(FOLDER)]
    return [name for name in found if (FOLDER / f"{name}.py").is_file()]


def test_the_list_has_each_part_once() -> None:
    files = {file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.py")}
    assert sorted([*LISTED, PRIMARY]) == sorted(name for name in files if not name.endswith("__init__"))


def test_each_part_uses_only_those_that_are_listed_before_it() -> None:
    order = [*LISTED, PRIMARY]
    found = [(part, used) for part in order for used in imports_of(part) if order.index(used) >= order.index(part)]
    assert found == []
    assert "decisions/attempt" in imports_of("leader/view_change"), "imports are seen at all"


def test_the_note_says_of_each_part_what_it_answers() -> None:
    rows = re.findall(r"^\| [^|]+\? \| `([\w/]+)\.py` \|$", NOTE.read_text(), re.MULTILINE)
    assert rows == [*LISTED, PRIMARY]
