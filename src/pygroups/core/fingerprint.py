"""The fingerprint: profile, layers and limits as one text, which must be equal at all members of a group."""

from __future__ import annotations

from typing import Final

_PARTS: Final = 2  # the profile and its layers stand before the limits, which are written name=value


def fingerprint(profile: str, layers: str, limits: str) -> str:
    """The text that a joiner sends and a group compares with its own."""
    return f"{profile} {layers} {limits}"


def difference(group: str, joiner: str) -> str:
    """The differences between two fingerprints: a clause for each field that differs, with both values."""
    ours, theirs = _fields(group), _fields(joiner)
    if ours is None or theirs is None or list(ours) != list(theirs):
        return f"the group is {group!r}, the joiner is {joiner!r}"
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing[:1] == ["profile"]:
        differing = [name for name in differing if name != "layers"]  # each profile has its own
    if "layers" in differing:
        return "the group has other layers in the same profile: it runs another version of pygroups"
    return "; ".join([f"the group has {name}={ours[name]}, the joiner {name}={theirs[name]}" for name in differing])


def _fields(text: str) -> dict[str, str] | None:
    """The fields by name; None for a text of another form."""
    parts = text.split(" ")
    limits = [part.partition("=") for part in parts[_PARTS:]]
    if len(parts) < _PARTS or not all(name and value for name, _, value in limits):
        return None
    return {"profile": parts[0], "layers": parts[1], **{name: value for name, _, value in limits}}
