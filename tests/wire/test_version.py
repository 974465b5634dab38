"""The wire version stands for what travels: a change of a head is seen here, and asks for another version."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from typing import Any, Final

from msgspec import inspect

from pygroups.wire.frame import VERSION
from tests.wire.samples import HEADS

FILE: Final = Path(__file__).with_name("heads.txt")
CHANGED: Final = (
    "A head has changed. Processes with it and without it must not form a group: raise VERSION in wire/frame.py, "
    "unless it was raised since the last release. UPDATE=1 pytest tests/wire/test_version.py writes the heads anew."
)


def told(kind: Any, named: dict[str, Any]) -> str:
    """A type with its bounds; types that have fields are `named` and told apart."""
    if hasattr(kind, "fields"):
        named[kind.cls.__name__] = kind
        return str(kind.cls.__name__)
    cls = getattr(kind, "cls", None)
    if isinstance(cls, EnumMeta):
        return f"{cls.__name__}{[member.value for member in cls]}"  # type: ignore[var-annotated]
    return type(kind).__name__.removesuffix("Type") + "".join(_parts(kind, named))


def _parts(kind: Any, named: dict[str, Any]) -> Iterator[str]:
    for name in kind.__struct_fields__:
        value = getattr(kind, name)
        if isinstance(value, inspect.Type):
            yield f" {told(value, named)}"
        elif isinstance(value, tuple):
            yield f" ({', '.join(told(one, named) if isinstance(one, inspect.Type) else str(one) for one in value)})"
        elif value is not None and name != "cls":
            yield f" {name}={value}"


def fields(kind: Any, named: dict[str, Any]) -> str:
    return ", ".join(f"{one.name}{'' if one.required else '?'}: {told(one.type, named)}" for one in kind.fields)


def wire() -> str:
    """All heads by their tags, and the types in them, each with its fields."""
    named: dict[str, Any] = {}
    heads = sorted((kind.__struct_config__.tag, kind) for kind in HEADS)  # type: ignore[attr-defined]
    lines = [f"{tag} {kind.__name__}({fields(inspect.type_info(kind), named)})" for tag, kind in heads]
    apart: dict[str, str] = {}
    while rest := [name for name in named if name not in apart]:
        apart.update({name: f"{name}({fields(named[name], named)})" for name in rest})
    return "\n".join([f"wire version {VERSION}", *lines, *sorted(apart.values()), ""])


def test_the_heads_are_those_of_this_version() -> None:
    if os.environ.get("UPDATE"):
        FILE.write_text(wire())
    assert FILE.read_text() == wire(), CHANGED
