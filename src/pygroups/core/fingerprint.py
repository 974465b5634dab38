"""The fingerprint: profile, layers and limits as one text, which must be equal at all members of a group."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

_PARTS: Final = 2  # the profile and its layers stand before the limits, which are written name=value
_DIGEST_BITS: Final = 62  # a whole number of the wire


def fingerprint(profile: str, layers: str, limits: str) -> str:
    """The text that a joiner sends and a group compares with its own."""
    return f"{profile} {layers} {limits}"


def digest(text: str) -> int:
    """A hash of a fingerprint, for messages that are sent often."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> (64 - _DIGEST_BITS)


def difference(ours: str, theirs: str, us: str = "the group", them: str = "the joiner") -> str:
    """The differences between two fingerprints: a clause for each field that differs, with both values.

    `us` and `them` are the subjects of the clauses.
    """
    one, other = _fields(ours), _fields(theirs)
    if one is None or other is None:
        return f"{us} is {ours!r}, {them} is {theirs!r}"
    differing = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    if differing[:1] == ["profile"]:
        differing = [name for name in differing if name != "layers"]  # each profile has its own
    clauses = []
    for name in differing:
        if name == "layers":
            ours, theirs = _layers(one[name], other[name]), _layers(other[name], one[name])
            clauses.append(f"{us} has {ours}, {them} {theirs}, in the same profile of another version of pygroups")
        else:
            clauses.append(f"{us} has {_value(one, name)}, {them} {_value(other, name)}")
    return "; ".join(clauses)


def _layers(ours: str, theirs: str) -> str:
    """The layers that only one of two stacks has, as a field; all layers if both stacks have the same ones."""
    mine, others = ours.split("/"), theirs.split("/")
    if sorted(mine) == sorted(others):
        return f"layers={ours}"
    only = [layer for layer in mine if layer not in others]
    return f"the layers {'/'.join(only)}" if only else "no further layer"


def _value(fields: Mapping[str, str], name: str) -> str:
    return f"{name}={fields[name]}" if name in fields else f"no {name}"


def _fields(text: str) -> dict[str, str] | None:
    """The fields by name; None for a text of another form."""
    parts = text.split(" ")
    limits = [part.partition("=") for part in parts[_PARTS:]]
    if len(parts) < _PARTS or not all(name and value for name, _, value in limits):
        return None
    return {"profile": parts[0], "layers": parts[1], **{name: value for name, _, value in limits}}
