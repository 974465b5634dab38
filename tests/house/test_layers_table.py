"""The table of all layers says what the code says, and the tour of the code names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

from pygroups.layers.profiles import PROFILES

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| \[(\w+)\]\(\w+\.md\) \| [^|]+ \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def words(cell: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Z]\w+", cell))


def test_the_table_has_each_layer_with_its_needs_and_its_services() -> None:
    layers = {layer.__name__.lower(): layer for profile in PROFILES.values() for layer in profile.layers}
    table = (ROOT / "docs/layers/README.md").read_text()
    rows = {name.replace("_", "").lower(): (words(needs), words(gives)) for name, needs, gives in ROW.findall(table)}
    assert rows == {name: (layer.needs | layer.needs_above, layer.gives) for name, layer in layers.items()}


def test_the_tour_names_files_that_are_there() -> None:
    tour = (ROOT / "ARCHITECTURE.md").read_text().partition("## Read the code in an hour\n")[2].partition("\n## ")[0]
    files = re.findall(r"`(\w[\w/]+\.py)`", tour)
    assert len(files) >= 7
    assert [file for file in files if not (ROOT / "src/pygroups" / file).is_file()] == []
