"""The guide to the profiles names each profile, its table of sizes is true, and its figures are the measured ones."""

from __future__ import annotations

import importlib
import re
import textwrap
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pytest

from pygroups.layers.profiles import PROFILES
from pygroups.sim.promises.chain import is_majority

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/choosing-a-profile.md").read_text()


def test_each_profile_is_in_the_table_of_choices() -> None:
    choices = GUIDE.split("| choose | if |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", choices, re.MULTILINE)) == sorted(PROFILES)


def test_the_examples_are_python() -> None:
    examples = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert examples
    for example in examples:
        compile(f"async def _():\n{textwrap.indent(example, '    ')}", "choosing-a-profile.md", "exec")


def survivable(count: int) -> list[tuple[int, ...]]:
    """The sets of members, by rank from 1, whose loss at once leaves a majority."""
    ranks = tuple(range(1, count + 1))
    lost = [some for size in ranks for some in combinations(ranks, size)]
    return [some for some in lost if is_majority(ranks, [rank for rank in ranks if rank not in some])]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "told", "lost"),
    [
        (1, "nobody", []),
        (2, "the second. If the first is lost, the second is blocked", [(2,)]),
        (3, "any one", [(1,), (2,), (3,)]),
        (4, "any one; two others than the first", [(1,), (2,), (3,), (4,), (2, 3), (2, 4), (3, 4)]),
        (5, "any two", [*combinations(range(1, 6), 1), *combinations(range(1, 6), 2)]),
    ],
)
def test_the_table_of_sizes_follows_the_rule(count: int, told: str, lost: list[tuple[int, ...]]) -> None:
    assert f"| {count} | {told} |" in GUIDE
    assert survivable(count) == lost


# -- the figures


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("profiles")


def test_the_figures_of_the_guide_are_the_last_results(bench: ModuleType) -> None:
    assert bench.with_table(GUIDE, bench.results()) == GUIDE


def test_the_last_line_of_each_profile_and_size_counts(bench: ModuleType) -> None:
    def line(profile: str, members: int, speed: int) -> dict[str, object]:
        figures = {"messages_per_s": speed, "p50_ms": 1.26, "cpu_s_per_million_deliveries": 0.5}
        return {"profile": profile, "members": members} | figures

    lines = [line("uniform", 4, 200_123), line("fifo", 4, 1), line("fifo", 2, 1_000), line("fifo", 4, 400_400)]
    assert bench.table(lines).splitlines()[2:] == [
        "| 2 | `fifo` | 1,000 | 1.3 ms | 0.50 us |",
        "| 4 | `fifo` | 400,000 | 1.3 ms | 0.50 us |",
        "| 4 | `uniform` | 200,000 | 1.3 ms | 0.50 us |",
    ]
