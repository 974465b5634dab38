"""A line for each long search, in bench/results/exhaustive.jsonl."""

from __future__ import annotations

import json
import time
from typing import Final

from bench.common import RESULTS, commit
from bench.simulate import digest_of
from pygroups.layers.profiles import PROFILES

from .explore import Result
from .kept import search_digest

FILE: Final = RESULTS / "exhaustive.jsonl"


def append(found: Result, planted: str = "") -> None:
    """Write a result down.  `digest` belongs to the layers and checks, `search` to the code of this folder."""
    line = {
        "bench": "exhaustive",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "digest": digest_of(PROFILES[found.profile]),
        "search": search_digest(),
        "planted": planted or None,
        **{name: value for name, value in found._asdict().items() if name != "violation"},
        "promise": found.violation.promise if found.violation else None,
        "detail": found.violation.detail if found.violation else None,
    }
    with FILE.open("a") as file:
        file.write(json.dumps(line) + "\n")
