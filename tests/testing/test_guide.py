"""The guide is right: its tests run, and what it says of a failure is what a failure says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pygroups.testing import Group  # and asyncio: what pytester's runs load first is loaded anew for each of them

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "testing.md").read_text()
# The plugin may be installed and loaded already, which pytester's run within this process warns of.
PLUGIN = ("-p", "pytest_pygroups", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
FAILURES = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("number", [n for n, block in enumerate(BLOCKS) if "test_hangs" not in block])
def test_the_tests_of_the_guide_pass(pytester: pytest.Pytester, number: int) -> None:
    pytester.makepyfile(test_guide=BLOCKS[number])
    counts = pytester.runpytest_inprocess(*PLUGIN).parseoutcomes()
    assert set(counts) == {"passed"}


def test_a_failure_reads_as_the_guide_says(pytester: pytest.Pytester) -> None:
    (block,) = [block for block in BLOCKS if "test_hangs" in block]
    pytester.makepyfile(test_guide=block)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(failed=1)
    (lines,) = FAILURES
    shown = [re.sub(r"\d+\.\d+ s", "? s", line) for line in result.outlines]
    for line in lines.splitlines():
        assert re.sub(r"\d+\.\d+ s", "? s", line) in shown


def test_the_guide_shows_every_call() -> None:
    calls = [name for name in vars(Group) if not name.startswith("_")]
    assert len(calls) > 8
    assert [name for name in calls if f"group.{name}" not in GUIDE and name != "channel"] == []
