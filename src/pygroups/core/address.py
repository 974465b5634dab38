"""Addresses.  A member is one incarnation of a process, and has an address of its own."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from .errors import UsageError

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
INCARNATION_DIGITS: Final = 16

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Incarnation = Annotated[str, Meta(min_length=1, max_length=32)]


class Address(NamedTuple):
    """A member's name and its random incarnation, which is new at each start.  Addresses are compared as pairs (name,
    incarnation), byte by byte."""

    name: Name
    incarnation: Incarnation

    def __str__(self) -> str:
        return f"{self.name}@{self.incarnation}"

    def __repr__(self) -> str:
        return str(self)


def parse_address(text: str) -> Address:
    """The address written as `name@incarnation`.  Raises UsageError for any other text."""
    name, at, incarnation = text.rpartition("@")
    if not at or not NAME.fullmatch(name) or not re.fullmatch(r"[0-9a-f]{1,32}", incarnation):
        raise UsageError(f"{text!r} is not an address: write it as name@incarnation, for instance A@3f2c91d0")
    return Address(name, incarnation)


def checked_name(text: str, what: str) -> str:
    """`text`, if it is a valid name.  Raises UsageError otherwise.  The message of the error contains `what`: "member",
    "group" or "process"."""
    if not isinstance(text, str) or not NAME.fullmatch(text) or text in (".", ".."):
        raise UsageError(f"{text!r} cannot name a {what}: use 1 to 64 letters, digits, dots, underscores or dashes")
    return text
