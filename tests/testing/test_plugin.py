"""The fixture `group` of pytest: what it runs, what it leaves alone, and that it costs nothing."""

from __future__ import annotations

import asyncio  # noqa: F401 (what pytester's runs load first is loaded anew for each of them, and this must not be)
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The plugin may be installed and loaded already, which pytester's run within this process warns of.
PLUGIN = ("-p", "pytest_pygroups", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


def outcomes(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess(*PLUGIN, *options)


def test_a_coroutine_test_that_takes_the_fixture_runs_in_virtual_time(pytester: pytest.Pytester) -> None:
    text = """
        import asyncio, pytest
        from pygroups import Channel

        @pytest.fixture
        def payload():
            return b"x"

        async def test_two(group, payload):
            async with Channel("g", name="A") as a, group.channel("g", name="B") as b:
                await a.send(payload, until="stable")
                await asyncio.sleep(1_000)
                assert group.now > 1_000

        class TestOthers:
            async def test_in_a_class(self, group):
                assert self is not None
                await asyncio.sleep(1_000)

        @pytest.mark.parametrize("number", [1, 2])
        async def test_with_parameters(group, number):
            assert number in (1, 2)
    """
    outcomes(pytester, text).assert_outcomes(passed=4)


def test_a_plain_test_uses_it_where_another_plugin_runs_coroutines(pytester: pytest.Pytester) -> None:
    text = """
        from pygroups import Channel

        def test_two(group):
            async def story():
                async with Channel("g", name="A") as a:
                    return await a.send(b"x", until="stable")

            assert group.run(story) == 1
    """
    outcomes(pytester, text).assert_outcomes(passed=1)


def test_a_fixture_starts_processes_that_run_when_the_test_begins(pytester: pytest.Pytester) -> None:
    text = """
        import asyncio, pytest
        from pygroups import Channel, Message

        class Node:
            def __init__(self):
                self.heard = []

            async def run(self):
                async with Channel("orders") as channel:
                    async for event in channel:
                        if isinstance(event, Message):
                            self.heard.append(event.payload)

        @pytest.fixture
        def nodes(group):
            nodes = {name: Node() for name in "ABC"}
            for name, node in nodes.items():
                task = group.start(name, node.run())
                assert isinstance(task, asyncio.Task) and not task.done()
            return nodes

        async def test_all_hear(group, nodes):
            await group.settled(one=True)
            async with Channel("orders", name="D") as channel:
                await channel.send(b"x", until="stable")
                group.crash("A")
                await group.settled()
            assert [node.heard for node in nodes.values()] == [[b"x"]] * 3

        async def test_only_the_fixture_is_named(nodes):
            await asyncio.sleep(1)
            async with Channel("orders", name="D") as channel:
                assert [member.name for member in channel.view.members] == [*"ABCD"]

        def test_a_plain_test_runs_them_too(group, nodes):
            group.run(group.settled)
            assert group.now > 0
    """
    outcomes(pytester, text, "-W", "error").assert_outcomes(passed=3)


def test_a_process_that_never_ran_is_named(pytester: pytest.Pytester) -> None:
    text = """
        import asyncio

        def test_that_runs_nothing(group):
            group.start("A", asyncio.sleep(1))
    """
    result = outcomes(pytester, text)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*LeftOpen: process 'A' never ran: only a coroutine test, or group.run(), runs*"])


def test_beside_another_fixture_of_the_name_group_it_has_a_long_name(pytester: pytest.Pytester) -> None:
    text = """
        import asyncio, pytest

        @pytest.fixture
        def group():
            return "mine"

        @pytest.mark.pygroups(seeds=[3, 4])
        async def test_two(pygroups_group, group):
            await asyncio.sleep(1_000)
            assert group == "mine" and pygroups_group.now >= 1_000 and pygroups_group.seed in (3, 4)
    """
    outcomes(pytester, text).assert_outcomes(passed=2)


def test_failures_are_told_as_usual(pytester: pytest.Pytester) -> None:
    text = """
        import asyncio, pytest

        @pytest.mark.pygroups(seed=7)
        async def test_fails(group):
            await asyncio.sleep(1)
            assert group.seed == 8

        async def test_hangs(group):
            async with group.channel("g", name="A") as a:
                async for event in a:
                    pass

        @pytest.mark.pygroups(limit=10)
        async def test_goes_on(group):
            await asyncio.sleep(20)

        async def test_skips(group):
            pytest.skip("not today")

        async def test_leaves(group):
            await group.channel("g", name="forgotten").__aenter__()
    """
    result = outcomes(pytester, text)
    result.assert_outcomes(passed=1, failed=3, skipped=1, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "*assert 7 == 8",
            "*pygroups.testing: seed 7, 1.0*",
            "*Hang: the test hangs*",
            "*waits for an event at channel A (test_failures_are_told_as_usual.py:10 in test_hangs)",
            ">*async for event in a:",
            "*longer than 10 seconds*",
            "*LeftOpen: channel forgotten of group 'g' was open*",
        ]
    )


def test_a_test_runs_once_for_each_seed(pytester: pytest.Pytester) -> None:
    text = """
        import pytest

        seen = []

        @pytest.mark.pygroups(seeds=range(3))
        async def test_many(group):
            seen.append(group.seed)

        def test_after():
            assert seen == [0, 1, 2]
    """
    result = outcomes(pytester, text, "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_many?seed2? PASSED*"])


def test_what_is_somebody_elses_is_left_alone(pytester: pytest.Pytester) -> None:
    text = """
        import pytest

        @pytest.fixture
        def group():
            return "mine"

        def test_plain(group):
            assert group == "mine"

        async def test_other(group):
            raise AssertionError("nobody runs it")
    """
    result = outcomes(pytester, text, "-W", "ignore")
    assert result.parseoutcomes().get("passed") == 1
    result.stdout.no_fnmatch_line("*nobody runs it*")


def test_pytest_loads_nothing_of_pygroups_until_a_test_wants_it() -> None:
    code = "import sys, pytest_pygroups; print([name for name in sys.modules if name.startswith('pygroups')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_core_needs_no_pytest() -> None:
    code = "import sys, pygroups.testing; print('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_package_brings_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"pytest_pygroups": "pytest_pygroups"}
    assert (ROOT / "src" / "pytest_pygroups" / "__init__.py").is_file()


def test_unittest_uses_the_function(tmp_path: Path) -> None:
    text = """
import unittest
from pygroups import Channel
from pygroups.testing import run

class Test(unittest.TestCase):
    def test_two(self):
        async def story(group):
            async with Channel("g", name="A") as a:
                self.assertEqual(await a.send(b"x", until="stable"), 1)
        run(story, seed=3)
"""
    (tmp_path / "test_it.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "unittest", "test_it"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Ran 1 test" in ended.stderr
