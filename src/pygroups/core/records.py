"""Conversion of the layers' records to plain values: an address becomes `name@incarnation`, a view id a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .address import Address
from .layer import Record

PlainRecord = tuple[str, tuple[int, str] | None, Mapping[str, object]]

_PLAIN_TYPES: Final = frozenset({int, str, bool, bytes, type(None)})


def plain_records(records: Sequence[Record]) -> list[PlainRecord]:
    """`records` as a journal accepts them.  Drivers and the simulator call this function once per turn."""
    texts: dict[Address, str] = {}  # most records of a turn name the same few members
    return [
        (
            kind,
            None if view is None else (view.number, _text(view.leader, texts)),
            {name: v if type(v) in _PLAIN_TYPES else _plain(v, texts) for name, v in fields.items()},
        )
        for kind, view, fields in records
    ]


def _plain(value: Any, texts: dict[Address, str]) -> object:
    """`value` with the text of each address in place of the address, also inside sequences and as a mapping's key."""
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return value
    if kind is Address:
        return _text(value, texts)
    if isinstance(value, Mapping):
        return {_plain(key, texts): one for key, one in value.items()}
    assert isinstance(value, tuple | list), f"a journal cannot hold {value!r}"
    return [_plain(one, texts) for one in value]


def _text(address: Address, texts: dict[Address, str]) -> str:
    text = texts.get(address)
    if text is None:
        text = texts[address] = str(address)
    return text
