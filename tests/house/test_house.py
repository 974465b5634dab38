"""The house keeps its rules; and each rule is first seen to catch an offence."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import language, rules, scenarios

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
    rules.class_names,
    rules.layer_places,
    rules.machine_traces,
    language.plain_language,
    language.plain_messages,
    scenarios.scenarios_have_tests,
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
    (rules.sizes, CLI, "x = 1\n" * (rules.FILE_LINES + 1), "401 lines"),
    (rules.sizes, CLI, LONG_FUNCTION, "long has 51 lines"),
    (rules.sizes, CLI, "class C:\n    async def m(self):\n" + "        x = 1\n" * 50, "m has 51 lines"),
    (rules.layer_places, LAYER, "", "there is no note docs/layers/nakack.md"),
    (rules.layer_places, "src/pygroups/layers/gms/__init__.py", "", "layer gms: there is no test"),
    (rules.machine_traces, "constraints.txt", "x @ " + "file:///wheels/x.whl", "says where packages come from"),
    (rules.machine_traces, "Makefile", "pip install --index" + "-url x", "says where packages come from"),
    (rules.machine_traces, "a.toml", "u = 'https://" + "mirror.example/simple'", "says where packages come from"),
    (rules.machine_traces, "docs/x.md", "see " + "/ho" + "me/me/x", "is a path of one machine"),
    (
        language.plain_language,
        "docs/guides/x.md",
        "Messages wait.\nWhat waits is sent later.",
        "x.md:2: 'What' hides a noun",
    ),
    (language.plain_language, "README.md", "A view names whoever\nis in it.", "README.md:1: 'whoever' hides a noun"),
    (language.plain_language, CLI, 'def f():\n    """Who asks, in order."""', "join.py:2: 'Who' hides a noun"),
    (language.plain_language, NOTE, "The member\nis told, and somebody waits.", "nakack.md:2: 'is told' hides"),
    (language.plain_language, "docs/x.md", "Then somebody waits.", "x.md:1: 'somebody' hides a noun"),
    (language.plain_language, PLUGIN, '"""What the mark says."""', "__init__.py:1: 'What' hides a noun"),
    (language.plain_messages, CLI, 'raise Error(f"{name} has what it needs")', "join.py:1: 'what' in the message"),
    (language.plain_messages, CLI, 'def f():\n    raise Error("no", "it is told") from e', "join.py:2: 'told' in"),
    (language.plain_messages, DRIVER, 'LOGGER.warning("nobody answers %s", name)', "pump.py:1: 'nobody' in"),
    (language.plain_messages, DRIVER, 'self.warn.warning("kind", "a former life of %s", x)', "pump.py:1: 'life' in"),
    (language.plain_messages, LAYER, 'self.env.drop("answers to whoever asks")', "nakack.py:1: 'whoever' in"),
    (language.plain_messages, LAYER, 'count(\n    "asks in vain" if x else "asks"\n)', "nakack.py:2: 'in vain' in"),
    (language.plain_messages, PROMISES, 'return broken(A, f"{a} falls at {b}")', "judge.py:1: 'falls' in"),
    (
        language.plain_messages,
        "tests/mutants/M99-x.toml",
        'protocol = "GMS"\nbug = "the leader forgets who asked"',
        "M99-x.toml:2: 'who' in the message",
    ),
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
    (rules.layer_places, "src/pygroups/layers/profiles.py", ""),
    (
        language.plain_language,
        "docs/x.md",
        'What is a view? A list. It says what happened: `Whoever x`, and "Who does".',
    ),
    (language.plain_language, CLI, 'def f():\n    """The members, and who leads them."""'),
    (language.plain_messages, CLI, 'raise Error(f"{who}: {what!r}, `what`", "life")\nprint("who is told")'),
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


NUMBERED = """# NAKACK

## Scenarios

1. A hole. 2. Repeats, as in 1.
3. **A view** ends (NAK-03).

## Limits

4. None.
"""


def test_a_scenario_without_a_test_of_its_name_is_named(tree: Path) -> None:
    plant(tree, NOTE, NUMBERED)
    plant(tree, TEXT, "")
    plant(tree, "tests/layers/text/nakack/05_views.txt", "")
    plant(tree, "tests/layers/test_nakack.py", "def test_2_repeats(): ...")
    plant(tree, "tests/scenarios/test_views.py", "def test_flush_3_a_view_ends(): ...\ndef test_NAK_031(): ...")
    table = (
        "| NAK-03 | a hole | `test_nakack.py` |\n| NAK-04 | two | `test_nakack.py` |\n| NAK-05 | x | comes with y |\n"
    )
    plant(tree, "tests/scenarios/README.md", table)
    assert scenarios.scenarios_have_tests(tree) == [
        "docs/layers/nakack.md: scenario NAK-04 has a test and is not in the note",
        "docs/layers/nakack.md: scenario NAK-03 has no test of its name",
        "docs/layers/nakack.md: scenario 3 has no test of its name",
        "docs/layers/nakack.md: the conversation 05_views.txt has a number that the note does not list",
    ]


@pytest.mark.parametrize("name", ["test_nakack_3_NAK_03_a_view", "test_nakack_3_a_view(): ...\ndef test_nak_03"])
def test_a_scenario_with_a_test_of_its_name_passes(tree: Path, name: str) -> None:
    plant(tree, NOTE, NUMBERED)
    plant(tree, TEXT, "")
    plant(tree, "tests/layers/test_nakack.py", "async def test_2_repeats(): ...")
    plant(tree, "tests/scenarios/test_views.py", f"def {name}(): ...")
    assert scenarios.scenarios_have_tests(tree) == []


def test_an_id_that_is_cut_short_is_named(tree: Path) -> None:
    plant(tree, NOTE, "NAK-01, 02 and 03")
    plant(tree, "tests/layers/test_nakack.py", "def test_nak_01(): ...")
    assert scenarios.scenarios_have_tests(tree) == [
        "docs/layers/nakack.md: 'NAK-01, 02 and 03' is cut short: write each id whole"
    ]


def test_two_classes_of_one_name_are_named(tree: Path) -> None:
    plant(tree, DRIVER, "class Home: ...\nclass Config: ...")
    plant(tree, CLI, "class Cli: ...\ndef f():\n    class Home: ...")
    plant(tree, "src/pytest_pygroups/__init__.py", "class Home: ...")
    assert rules.class_names(tree) == []
    plant(tree, LAYER, "class Home: ...\nclass Config: ...")
    assert rules.class_names(tree) == [
        "the class name Config stands in drivers.pump, layers.nakack: name each class by its own concept",
        "the class name Home stands in drivers.pump, layers.nakack: name each class by its own concept",
    ]


def test_a_pair_of_one_concept_is_allowed_and_a_third_class_is_not(tree: Path) -> None:
    plant(tree, "src/pygroups/core/limits.py", "class Config: ...")
    plant(tree, "src/pygroups/channel/config.py", "class Config: ...")
    assert rules.class_names(tree) == []
    plant(tree, LAYER, "class Config: ...")
    assert len(rules.class_names(tree)) == 1


def test_each_allowed_pair_is_there() -> None:
    found = [(node.name, name) for name, _, tree in rules.modules(ROOT) for node in tree.body if hasattr(node, "name")]
    for name, files in rules.ONE_CONCEPT.items():
        assert [(name, f"pygroups.{file}") for file in files if (name, f"pygroups.{file}") not in found] == []


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
    plant(tree, "CONTRIBUTING.md", "| folder |\n|---|\n| `core/` | words |\n| `blocks/` | locks |\n")
    found = [offence for offence in rules.maps(tree) if offence.startswith("CONTRIBUTING")]
    assert found == ["CONTRIBUTING.md: there is no room blocks", "CONTRIBUTING.md: the room wire is missing"]
    assert "MAY_IMPORT: there is no room pytest_pygroups" in rules.maps(tree)


@pytest.mark.parametrize(
    ("row", "allowed"),
    [
        ("| `core/` | words | `wire` |", "the rules let core import no other package of pygroups"),
        ("| `sim/` | the world | `core`, `layers`, `wire`, of `journal` the schema |", ""),
        ("| `sim/` | the world | `core`, `layers`, `wire` |", "the rules let sim import core, journal, layers, wire"),
        (
            "| `channel/` | the door | drivers and below |",
            "the rules let channel import core, drivers, journal, layers, wire",
        ),
        ("| `cli/` | commands | `channel` |", "the rules let cli import anything"),
    ],
)
def test_a_map_whose_imports_differ_from_the_rules_is_named(tree: Path, row: str, allowed: str) -> None:
    plant(tree, "src/pygroups/core/__init__.py", "")
    plant(tree, "CONTRIBUTING.md", f"| folder | what is in it | may import |\n|---|---|---|\n{row}\n")
    found = [offence for offence in rules.maps(tree) if offence.startswith("CONTRIBUTING.md: the rules")]
    assert found == ([f"CONTRIBUTING.md: {allowed}"] if allowed else [])


def test_a_map_of_inner_rooms_that_differs_from_the_folders_is_named(tree: Path) -> None:
    plant(tree, "src/pygroups/sim/world/__init__.py", "")
    plant(tree, "CONTRIBUTING.md", "| `sim/drawn/` | schedules |\n")
    found = [offence for offence in rules.maps(tree) if offence.startswith("CONTRIBUTING")]
    assert found == ["CONTRIBUTING.md: there is no room sim/drawn", "CONTRIBUTING.md: the room sim/world is missing"]


def test_the_table_covers_each_room_and_the_rules_read_the_real_tree() -> None:
    found = {name for name, _, _ in rules.modules(ROOT)}
    assert {"pygroups", "pygroups.cli.main", "pygroups.core.errors"} <= found
    assert ROOT / "pyproject.toml" in set(rules.texts(ROOT))
    assert all(isinstance(tree, ast.Module) for _, _, tree in rules.modules(ROOT))
