"""Each scenario that the note of a layer lists has a test of its name.

A scenario has a number in its note (`3.`) or an id that holds for all notes (`UNI-09`).  The test of a number is a
conversation `tests/layers/text/<layer>/03_*.txt`, a function `test_3_*` in a test file of the layer, or a function
`test_<layer>_3_*` anywhere.  The test of an id is a function with `UNI_09` in its name, or a conversation whose file
begins with `UNI-09`.  A conversation with a number that no note lists is an offence too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.rules import layer_names

IDS = "DIG|FLOW|JOIN|LEAVE|MRG|NAK|PB|PRIM|RSVP|SEC|SEQ|STB|TOT|UFM|UNI|VIEW"
_ID = re.compile(rf"\b(?:{IDS})-\d\d\b")
_CUT_SHORT = re.compile(rf"\b(?:{IDS})-\d\d(?:(?:,| and| to)\s+\d\d\b)+")
_SECTION = re.compile(r"^## Scenarios\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?:^|[.):] )\s*(\d{1,2})\. (?=\S)", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
NOTE_OF = {"FLOW": "flow_control", "NAK": "nakack", "SEQ": "sequencer", "STB": "stable", "UNI": "unicast2"}
"""The note that lists the scenarios of a family, as far as `tests/scenarios/README.md` has a test for them."""
_BUILT = re.compile(rf"^\| ((?:{IDS})-\d\d) \|[^|]*\| `", re.MULTILINE)


def scenarios_have_tests(root: Path) -> list[str]:
    """Scenarios of the notes without a test of their name, and conversations whose number no note lists."""
    functions = list(_functions(root))
    offences = []
    for layer in layer_names(root):
        note = root / "docs" / "layers" / f"{layer}.md"
        if note.is_file():
            offences += [f"docs/layers/{layer}.md: {one}" for one in _of_note(root, layer, note.read_text(), functions)]
    return offences


def _of_note(root: Path, layer: str, note: str, functions: list[tuple[str, str]]) -> Iterator[str]:
    conversations = [file.stem for file in sorted((root / "tests" / "layers" / "text" / layer).glob("*.txt"))]
    everywhere = [file.stem for file in sorted((root / "tests" / "layers" / "text").glob("*/*.txt"))]
    for cut in _CUT_SHORT.findall(note):
        yield f"{cut!r} is cut short: write each id whole"
    for id in _built(root):
        if NOTE_OF.get(id.split("-")[0]) == layer and id not in note:
            yield f"scenario {id} has a test and is not in the note"
    for id in dict.fromkeys(_ID.findall(note)):
        name = re.compile(rf"(?:^|_){id.replace('-', '[-_]')}(?:_|$)", re.IGNORECASE)
        if not any(name.search(test) for test in (*everywhere, *(function for _, function in functions))):
            yield f"scenario {id} has no test of its name"
    listed = _numbers(note)
    own = f"test_{layer}"
    for number in listed:
        of_layer = re.compile(rf"test_{number}(?:_|$)")
        of_any = re.compile(rf"test_{layer}_{number}(?:_|$)")
        if f"{number:02}" not in {stem.split("_")[0] for stem in conversations} and not any(
            of_any.match(function) or (file.startswith(own) and of_layer.match(function))
            for file, function in functions
        ):
            yield f"scenario {number} has no test of its name"
    for stem in conversations:
        number_of = stem.split("_")[0]
        if number_of.isdigit() and int(number_of) not in listed:
            yield f"the conversation {stem}.txt has a number that the note does not list"


def _built(root: Path) -> list[str]:
    """The ids that the table of the scenarios has a test for."""
    table = root / "tests" / "scenarios" / "README.md"
    return _BUILT.findall(table.read_text()) if table.is_file() else []


def _numbers(note: str) -> list[int]:
    """The numbers in the section "Scenarios", in the order of the note."""
    section = _SECTION.search(note)
    text = _CODE.sub("", section[1]) if section else ""
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(text)))


def _functions(root: Path) -> Iterator[tuple[str, str]]:
    """File name and function name of each test."""
    for file in sorted((root / "tests").rglob("test_*.py")):
        yield from ((file.name, name) for name in _names(file))


@cache
def _names(file: Path) -> tuple[str, ...]:
    return tuple(
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )
