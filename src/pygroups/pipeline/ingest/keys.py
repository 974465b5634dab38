"""64-bit keys of incarnations, views and histories: the numbers that Spark's `xxhash64` gives for the same names."""

import struct
from typing import Final

from xxhash import xxh64_intdigest

_SEED: Final = 42
_WRAP: Final = 1 << 64


def key_of(*parts: str | int | None) -> int:
    """`xxhash64(parts...)` as Spark computes it: strings as UTF-8, integers as 64 bits; None leaves it unchanged."""
    number = _SEED
    for part in parts:
        if part is not None:
            data = part.encode() if isinstance(part, str) else struct.pack("<q", part)
            number = xxh64_intdigest(data, seed=number)
    return number - _WRAP if number >> 63 else number


def life_key(group: str, address: str) -> int:
    """The key of the incarnation `name@incarnation` in a group; names contain no `@`."""
    name, at, incarnation = address.partition("@")
    return key_of(group, name, incarnation if at else None)


def view_key(group: str, number: int, creator: str | None) -> int:
    """The key of a view in a group."""
    return key_of(group, number, creator)


def history_key(history: str) -> int:
    """The key of a history id."""
    return key_of(history)
