"""Every field of Config does something: some code in src reads it."""

from __future__ import annotations

import ast
from pathlib import Path

from pygroups.core.limits import Config

SOURCE = Path(__file__).parents[2] / "src" / "pygroups"
DEFINED = SOURCE / "core" / "limits.py"


def attributes_read(source: str) -> set[str]:
    """The names of all attributes that a module reads."""
    nodes = ast.walk(ast.parse(source))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def test_every_field_of_config_is_read() -> None:
    read: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        if file != DEFINED and "testing" not in file.relative_to(SOURCE).parts and "sim" not in file.parts:
            read |= attributes_read(file.read_text())
    assert [name for name in Config.__struct_fields__ if name not in read] == []


def test_what_is_only_written_or_named_does_not_count() -> None:
    assert attributes_read("config.window = 1; x = 'state_timeout'") == set()
    assert attributes_read("wait(env.config.state_timeout)") == {"env", "config", "state_timeout"} - {"env"}
