"""The classes that an earlier search has completed, in a file: a search that was stopped goes on behind them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bench.simulate import digest_of
from pygroups.layers.profiles import PROFILES

from .part import Counts


class Kept:
    """The completed classes of one case in one profile, by name.  They count only while the layers, the checks and
    the code of the search stay the same."""

    def __init__(self, file: Path, case: str, profile: str) -> None:
        self.file = file
        self.key = [digest_of(PROFILES[profile]), search_digest(), case, profile]
        self._known: dict[str, Counts] = {}
        lines = file.read_text().splitlines() if file.is_file() else []
        for line in lines:
            entry: dict[str, Any] = json.loads(line)
            if entry["key"] == self.key:
                self._known[entry["class"]] = Counts(*entry["counts"])

    def counts(self, name: str) -> Counts | None:
        """What came of a class; None if it was not completed."""
        return self._known.get(name)

    def keep(self, name: str, counts: Counts) -> None:
        """Write down what came of a whole class, in which no promise was broken."""
        assert counts.whole
        with self.file.open("a") as file:
            file.write(json.dumps({"key": self.key, "class": name, "counts": counts[:-1]}) + "\n")


def search_digest() -> str:
    """A digest of the code of this folder."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
