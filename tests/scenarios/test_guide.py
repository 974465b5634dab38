"""The examples of docs/guides/scenarios.md do what they say, and its table names nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pygroups.sim import Player, ScenarioGroup

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "scenarios.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_tests_of_the_guide_pass(pytester: pytest.Pytester, number: int) -> None:
    pytester.makepyfile(test_guide=BLOCKS[number])
    counts = pytester.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes()
    assert set(counts) == {"passed"}


def test_the_table_shows_every_call() -> None:
    table = "\n".join(line for line in GUIDE.splitlines() if line.startswith("|"))
    quiet = ("forms", "ends", "told", "heard", "save_journals", "members", "now", "stops_sending")  # told in docstrings
    calls = [name for kind in (ScenarioGroup, Player) for base in kind.__mro__[:-1] for name in vars(base)]
    public = [name for name in dict.fromkeys(calls) if not name.startswith("_") and name not in quiet]
    seen = {*re.findall(r"\.(\w+)\b", table)}
    named = ("accepted", "address", "journal", "name", "runs", "texts", "view_id")
    assert [name for name in public if name not in seen and name not in named] == []
    assert len(public) > 30
