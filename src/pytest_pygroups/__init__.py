"""For pytest: the fixture `group`, a group in memory, and coroutine tests that take it.  Guide: docs/guides/testing.md.

pytest loads this module wherever pygroups is installed, so the module imports pygroups only when a test uses `group`.
`pygroups_group` is the same fixture, for a project that has another fixture `group`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pygroups.testing import Group

MARK = (
    "pygroups(seed=0, seeds=None, limit=7200.0): for a test with `group`, the seed of all random decisions, or a list "
    "of seeds (the test runs once for each), and the longest duration in seconds of virtual time"
)
FIXTURE = "pygroups_group"


@pytest.fixture
def pygroups_group(request: pytest.FixtureRequest) -> Iterator[Group]:
    """A group in memory: see pygroups.testing.Group.  A coroutine test that takes this fixture runs in virtual time."""
    from pygroups.testing import Group

    options = _options(request.node)
    options.pop("seeds", None)
    if hasattr(request, "param"):
        options["seed"] = request.param
    group = Group(**options)
    yield group
    group._close()


@pytest.fixture
def group(pygroups_group: Group) -> Group:
    """A group in memory: `pygroups_group` by its short name."""
    return pygroups_group


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test with the mark `seeds` run once for each of the seeds."""
    seeds = _options(metafunc.definition).get("seeds")
    if seeds is not None and FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(FIXTURE, seeds, indirect=True, ids=lambda seed: f"seed{seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests that take the fixture, themselves or through other fixtures, and no others."""
    __tracebackhide__ = True
    if FIXTURE not in pyfuncitem.funcargs or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    group: Any = pyfuncitem.funcargs[FIXTURE]
    names = [name for name in inspect.signature(pyfuncitem.obj).parameters if name in pyfuncitem.funcargs]
    group.run(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    return True


def _options(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """The arguments of the mark."""
    mark = node.get_closest_marker("pygroups")
    return {} if mark is None else dict(mark.kwargs)
