"""The house keeps its rules; and each rule is first seen to catch an offence."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import rules

ROOT = Path(__file__).parents[2]
RULES = (
    rules.import_directions,
    rules.cycles,
    rules.circles,
    rules.maps,
    rules.the_world,
    rules.unsafe,
    rules.for_tests,
    rules.sizes,
    rules.acting_questions,
    rules.foreign_writes,
    rules.layer_places,
    rules.machine_traces,
)
Rule = Callable[[Path], list[str]]

LONG_FUNCTION = "def long():\n" + "    x = 1\n" * rules.FUNCTION_LINES
FULL_FUNCTION = "def full():\n" + "    x = 1\n" * (rules.FUNCTION_LINES - 1)
CORE, LAYER, WIRE = "src/pygroups/core/run.py", "src/pygroups/layers/nakack.py", "src/pygroups/wire/frame.py"
DRIVER, JOURNAL, SIM = "src/pygroups/drivers/pump.py", "src/pygroups/journal/schema.py", "src/pygroups/sim/shown.py"
WORLD, PROMISES = "src/pygroups/sim/world/member.py", "src/pygroups/sim/promises/judge.py"
PIPELINE, TESTING = "src/pygroups/pipeline/ingest.py", "src/pygroups/testing/group.py"
CHANNEL, CLI = "src/pygroups/channel/channel.py", "src/pygroups/cli/join.py"
PLUGIN = "src/pytest_pygroups/__init__.py"
GMS = "src/pygroups/layers/gms/membership.py"
NOTE, TEXT = "docs/layers/nakack.md", "tests/layers/text/nakack/01.txt"

PLANTED: list[tuple[Rule, str, str, str]] = [
    (rules.import_directions, CORE, "from pygroups.layers.nakack import Nakack", "core may not import layers.nakack"),
    (rules.import_directions, CORE, "from ..wire import frame", "core may not import wire.frame"),
    (rules.import_directions, CORE, "from pygroups import Channel", "core may not import pygroups itself"),
    (rules.import_directions, LAYER, "import pygroups.wire.frame as f", "layers may not import wire.frame"),
    (rules.import_directions, LAYER, "from pygroups import journal", "layers may not import journal"),
    (rules.import_directions, WIRE, "def f():\n    from pygroups.layers import nakack", "wire may not import layers"),
    (rules.import_directions, DRIVER, "from pygroups.journal import reader", "drivers may not import journal.reader"),
    (rules.import_directions, JOURNAL, "import pygroups.core.run", "journal may not import core.run"),
    (rules.import_directions, SIM, "from pygroups.drivers import pump", "sim may not import drivers.pump"),
    (rules.import_directions, WORLD, "from ..batches import runner", "sim.world may not import sim.batches.runner"),
    (rules.import_directions, PROMISES, "from pygroups.sim.world import world", "may not import sim.world"),
    (rules.import_directions, PIPELINE, "from pygroups.sim import world", "pipeline may not import sim.world"),
    (rules.import_directions, CHANNEL, "from ..sim import world", "channel may not import sim.world"),
    (rules.import_directions, TESTING, "from ..cli import join", "testing may not import cli.join"),
    (rules.import_directions, "src/pygroups/helpers.py", "", "pygroups.helpers stands in no room"),
    (
        rules.import_directions,
        "src/pyspark_pygroups/__init__.py",
        "import pygroups.core.run",
        "may not import core.run",
    ),
    (rules.the_world, CORE, "import time", "time has no place"),
    (rules.the_world, LAYER, "def f():\n    from os import path", "os has no place"),
    (rules.the_world, LAYER, "import asyncio.events", "asyncio has no place"),
    (rules.unsafe, CLI, "import pickle", "pickle runs"),
    (rules.unsafe, DRIVER, "from yaml import load", "yaml runs"),
    (rules.unsafe, WIRE, "x = eval('1')", "eval runs"),
    (rules.for_tests, PIPELINE, "def f():\n    import duckdb", "duckdb is for tests and benchmarks alone"),
    (rules.sizes, CLI, "x = 1\n" * (rules.FILE_LINES + 1), f"{rules.FILE_LINES + 1} lines"),
    (rules.sizes, CLI, LONG_FUNCTION, "long has 51 lines"),
    (rules.sizes, CLI, "class C:\n    async def m(self):\n" + "        x = 1\n" * 50, "m has 51 lines"),
    (
        rules.acting_questions,
        LAYER,
        "def is_due(self):\n    self.at = 0\n    return True",
        "is_due is named as a question",
    ),
    (
        rules.acting_questions,
        LAYER,
        "def _holds(self, a) -> bool:\n    self.above.append(a)\n    return True",
        "_holds",
    ),
    (rules.acting_questions, LAYER, "def is_due(self):\n    a, b = self.part, 1\n    a.at = b", "is_due is named"),
    (rules.acting_questions, LAYER, "def all_have_it(self):\n    return self.env.tell(1)", "all_have_it is named"),
    (
        rules.foreign_writes,
        GMS,
        "class A:\n    def f(self):\n        self.x = 1\n        self.b.x = 2",
        "self.b.x is changed",
    ),
    (rules.foreign_writes, GMS, "def f(a):\n    a.x.pop(1)\nclass A:\n    def f(self):\n        self.x = {}", "a.x is"),
    (rules.layer_places, LAYER, "", "there is no note docs/layers/nakack.md"),
    (rules.layer_places, "src/pygroups/layers/gms/__init__.py", "", "layer gms: there is no test"),
    (rules.machine_traces, "constraints.txt", "x @ " + "file:///wheels/x.whl", "says where packages come from"),
    (rules.machine_traces, "Makefile", "pip install --index" + "-url x", "says where packages come from"),
    (rules.machine_traces, "a.toml", "u = 'https://" + "mirror.example/simple'", "says where packages come from"),
    (rules.machine_traces, "docs/x.md", "see " + "/ho" + "me/me/x", "is a path of one machine"),
]
ALLOWED: list[tuple[Rule, str, str]] = [
    (rules.import_directions, LAYER, "from pygroups.core.run import Run\nfrom . import stable\nimport msgspec"),
    (rules.import_directions, DRIVER, "from pygroups.journal import writer\nfrom pygroups.journal.schema import KINDS"),
    (rules.import_directions, WORLD, "from ..promises.judge import Judge\nfrom .story import Story"),
    (rules.import_directions, SIM, "from .world.member import SimulatedMember"),
    (rules.import_directions, TESTING, "from pygroups.sim import world\nfrom .group import read"),
    (
        rules.import_directions,
        CLI,
        "import pygroups.sim.world, pygroups.pipeline.ingest\nfrom pygroups import Channel",
    ),
    (rules.the_world, DRIVER, "import asyncio, os, time"),
    (rules.the_world, LAYER, "from pygroups.core import time_of"),
    (rules.unsafe, PIPELINE, "def f(frame):\n    return frame.eval('a + b')"),
    (rules.sizes, CLI, FULL_FUNCTION + "x = 1\n" * (rules.FILE_LINES - rules.FUNCTION_LINES)),
    (
        rules.acting_questions,
        LAYER,
        "def is_due(self):\n    found = []\n    found.append(2)\n    self.env.drop('x')",
    ),
    (rules.layer_places, "src/pygroups/layers/profiles.py", ""),
    (rules.machine_traces, ".venv/x.cfg", "/ho" + "me/me/x"),
    (rules.machine_traces, "docs/x.md", "in src/work/x, on https://example.org/home/x and in ./home/x"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty house with all the modules of the cases above, so that what they import exists."""
    for file in (CORE, LAYER, WIRE, DRIVER, JOURNAL, SIM, PIPELINE, TESTING, CHANNEL, CLI):
        plant(tmp_path, file, "")
    plant(tmp_path, ".gitignore", "# names\n.venv\n")
    return tmp_path


def plant(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule: Rule) -> None:
    offences = rule(ROOT)
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(("rule", "file", "text", "offence"), PLANTED)
def test_an_offence_is_caught(tree: Path, rule: Rule, file: str, text: str, offence: str) -> None:
    plant(tree, file, text)
    assert any(offence in found for found in rule(tree))


@pytest.mark.parametrize(("rule", "file", "text"), ALLOWED)
def test_what_is_allowed_passes(tree: Path, rule: Rule, file: str, text: str) -> None:
    for known in (NOTE, TEXT):
        plant(tree, known, "")
    plant(tree, file, text)
    assert rule(tree) == []


def test_rooms_that_import_each_other_are_named(tree: Path) -> None:
    plant(tree, CLI, "from pygroups.testing import group")
    assert rules.cycles(tree) == []
    plant(tree, TESTING, "from pygroups.sim import world")
    plant(tree, SIM, "from pygroups.cli import join")
    (found,) = rules.cycles(tree)
    assert {"testing", "cli", "sim"} <= set(found.replace(" <- ", " ").split())


@pytest.mark.parametrize(
    "back",
    [
        "from . import runs",
        "from .runs import Runs",
        "import pygroups.wire.runs",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pygroups.wire.runs import Runs",
        "def read():\n    from .runs import Runs",
    ],
)
def test_files_that_import_each_other_are_named(tree: Path, back: str) -> None:
    plant(tree, "src/pygroups/wire/runs.py", "from pygroups.wire.heads import Head")
    plant(tree, "src/pygroups/wire/heads.py", "from .frame import Frame")
    assert rules.circles(tree) == []
    plant(tree, WIRE, back)
    circle = "pygroups.wire.frame -> pygroups.wire.runs -> pygroups.wire.heads -> pygroups.wire.frame"
    assert rules.circles(tree) == [f"files import each other in a circle: {circle}"]


def test_a_map_that_differs_from_the_folders_is_named(tree: Path) -> None:
    plant(tree, "src/pygroups/core/__init__.py", "")
    plant(tree, "src/pygroups/wire/__init__.py", "")
    plant(
        tree,
        "ARCHITECTURE.md",
        "| room | what | may import |\n|---|---|---|\n| `core/` | words | `wire` |\n| `bricks/` | x | y |\n",
    )
    assert [offence for offence in rules.maps(tree) if offence.startswith("ARCHITECTURE")] == [
        "ARCHITECTURE.md: there is no room bricks",
        "ARCHITECTURE.md: the room wire is missing",
        "ARCHITECTURE.md: the rules let core import no other package of pygroups",
    ]


def test_the_table_covers_each_room_and_the_rules_read_the_real_tree() -> None:
    found = {name for name, _, _ in rules.modules(ROOT)}
    assert {"pygroups", "pygroups.cli.main", "pygroups.core.errors"} <= found
    assert ROOT / "pyproject.toml" in set(rules.texts(ROOT))
    assert all(isinstance(tree, ast.Module) for _, _, tree in rules.modules(ROOT))
