"""For pytest: the fixture `group`, a group in memory, and coroutine tests that take it.  Guide: docs/guides/testing.md.

pytest loads this for everybody who has pygroups installed, so it imports nothing of it until a test asks for `group`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pygroups.testing import Group

MARK = "pygroups(seed=0, seeds=None, limit=7200.0): chance, and seconds of virtual time, for a test with `group`"


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Group:
    """A group in memory: see pygroups.testing.Group.  A coroutine test that takes it runs in virtual time."""
    from pygroups.testing import Group

    options = _options(request.node)
    options.pop("seeds", None)
    if hasattr(request, "param"):
        options["seed"] = request.param
    return Group(**options)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`seeds`: the test runs once for each."""
    seeds = _options(metafunc.definition).get("seeds")
    if seeds is not None and "group" in metafunc.fixturenames:
        metafunc.parametrize("group", seeds, indirect=True, ids=lambda seed: f"seed{seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests that take `group`, and no others."""
    __tracebackhide__ = True
    if "group" not in pyfuncitem.funcargs or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from pygroups.testing import Group

    group = pyfuncitem.funcargs["group"]
    if not isinstance(group, Group):  # somebody else's fixture of this name
        return None
    names = [name for name in inspect.signature(pyfuncitem.obj).parameters if name in pyfuncitem.funcargs]
    group.run(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names})
    return True


def _options(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """What the mark says."""
    mark = node.get_closest_marker("pygroups")
    return {} if mark is None else dict(mark.kwargs)
