"""What the members of a group must have in common, as one text: profile, layers and limits."""

from __future__ import annotations

from typing import Final

_PARTS: Final = 2  # the profile and its layers stand before the limits, which are written name=value


def fingerprint(profile: str, layers: str, limits: str) -> str:
    """The text that a joiner shows and a group compares."""
    return f"{profile} {layers} {limits}"


def difference(group: str, joiner: str) -> str:
    """In what the fingerprint of `joiner` differs from that of `group`: a clause for each field, with both values."""
    ours, theirs = _fields(group), _fields(joiner)
    if ours is None or theirs is None or list(ours) != list(theirs):
        return f"the group is {group!r}, the joiner is {joiner!r}"
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing[:1] == ["profile"]:
        differing = [name for name in differing if name != "layers"]  # each profile has its own
    if "layers" in differing:
        return "the group's layers are others, though the profile is the same: it runs another version of pygroups"
    return "; ".join([f"the group has {name}={ours[name]}, the joiner {name}={theirs[name]}" for name in differing])


def _fields(text: str) -> dict[str, str] | None:
    """The fields by name; None for a text of another form."""
    parts = text.split(" ")
    limits = [part.partition("=") for part in parts[_PARTS:]]
    if len(parts) < _PARTS or not all(name and value for name, _, value in limits):
        return None
    return {"profile": parts[0], "layers": parts[1], **{name: value for name, _, value in limits}}
