"""Every field of every head at its bounds, made from the types: what is allowed is taken, what is beyond is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import inspect

from pygroups.core.limits import MARKS_MAX
from pygroups.core.view import AgreedView
from tests.wire.samples import HEADS

NUMBERS = (
    -1,
    0,
    1,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 62) - 1,
    1 << 62,
    (1 << 62) + 1,
    1 << 63,
    (1 << 64) - 1,
)


class Case(NamedTuple):
    """A value with one part at a bound."""

    where: str
    value: Any
    taken: bool


class Unbounded(Exception):
    """A type without a limit."""


def minimal(kind: Any, number: int = 0) -> Any:
    """A small value of this type; those of different numbers differ."""
    match kind:
        case inspect.IntType():
            return max(kind.ge or 0, number)
        case inspect.BoolType():
            return False
        case inspect.NoneType():
            return None
        case inspect.StrType():
            return f"{number}".rjust(kind.min_length or 1, "x")
        case inspect.BytesType():
            return bytes(kind.min_length or 0)
        case inspect.ListType() | inspect.VarTupleType():
            return [minimal(kind.item_type, at) for at in range(kind.min_length or 0)]
        case inspect.TupleType():
            return [minimal(item, number) for item in kind.item_types]
        case inspect.DictType():
            return {}
        case inspect.UnionType():
            return minimal(kind.types[0], number)
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.NamedTupleType():
            return tuple(minimal(field.type, number) for field in kind.fields)
        case inspect.StructType():
            least = [*_tag(kind), *[minimal(field.type, number) for field in kind.fields]]
            return _agreed(least, 0) if kind.cls is AgreedView else least
    raise AssertionError(f"no value of {kind}")


def _tag(kind: inspect.StructType) -> list[Any]:
    return [] if kind.tag is None else [kind.tag]


def cases(kind: Any, where: str) -> Iterator[Case]:
    """Values of this type with one bound each."""
    match kind:
        case inspect.IntType():
            yield from _of_int(kind, where)
        case inspect.StrType() | inspect.BytesType():
            unit: Any = "x" if isinstance(kind, inspect.StrType) else b"x"
            for size in _sizes(kind, where):
                yield Case(f"{where}: length {size:,}", unit * size, _fits(kind, size))
        case inspect.ListType() | inspect.VarTupleType():
            for size in _sizes(kind, where):
                items = [minimal(kind.item_type, at) for at in range(size)]
                yield Case(f"{where}: {size:,} elements", items, _fits(kind, size))
            for case in cases(kind.item_type, f"{where}[]"):
                yield case._replace(value=[case.value])
        case inspect.DictType():
            yield from _of_dict(kind, where)
        case inspect.TupleType():
            yield from _of_parts(list(kind.item_types), where, [])
        case inspect.NamedTupleType():
            for case in _of_parts([field.type for field in kind.fields], where, []):
                yield case._replace(value=tuple(case.value))
        case inspect.StructType():
            found = _of_parts([field.type for field in kind.fields], where, _tag(kind))
            if kind.cls is not AgreedView:
                yield from found
                return
            for case in found:  # of all its fields only the one under test may be wrong
                at = int(case.where[len(where) + 1])
                yield case._replace(
                    value=_agreed(case.value, at), taken=case.taken and (at != 2 or bool(case.value[2]))
                )
        case inspect.UnionType():
            for one in kind.types:
                yield from cases(one, where)


def _agreed(view: list[Any], at: int) -> list[Any]:
    """The view with as many members, contacts and joins as the field `at` has."""
    view, count = list(view), len(view[at]) if at in (1, 2, 4) else 1
    count = max(count, at == 4)  # a view whose members all founded the group names no joins
    for part, one in ((1, lambda n: [f"m{n}", "0"]), (2, lambda _: "h:1"), (4, lambda n: n)):
        if part != at:
            view[part] = [one(number) for number in range(count)] if part != 4 or at == 4 else []
    return view


def _of_int(kind: inspect.IntType, where: str) -> Iterator[Case]:
    if kind.le is None or kind.ge is None:
        raise Unbounded(where)
    for number in sorted({kind.ge - 1, kind.ge, kind.le - 1, kind.le, kind.le + 1, *NUMBERS}):
        yield Case(f"{where} = {number}", number, kind.ge <= number <= kind.le)


def _of_dict(kind: inspect.DictType, where: str) -> Iterator[Case]:
    for size in _sizes(kind, where):
        value = {minimal(kind.key_type, at): minimal(kind.value_type) for at in range(size)}
        yield Case(f"{where}: {size:,} entries", value, _fits(kind, size))
    for case in cases(kind.key_type, f"{where}.key"):
        yield case._replace(value={case.value: minimal(kind.value_type)})
    for case in cases(kind.value_type, f"{where}.value"):
        yield case._replace(value={minimal(kind.key_type): case.value})


def _of_parts(kinds: list[Any], where: str, before: list[Any]) -> Iterator[Case]:
    least = [minimal(kind) for kind in kinds]
    for at, kind in enumerate(kinds):
        for case in cases(kind, f"{where}.{at}"):
            yield case._replace(value=[*before, *least[:at], case.value, *least[at + 1 :]])


def _sizes(kind: Any, where: str) -> list[int]:
    if kind.max_length is None:
        raise Unbounded(where)
    most = kind.max_length
    if most >= MARKS_MAX:
        return []  # a digest at its limit is large, and has a test of its own in test_bounds.py
    return sorted({max(0, (kind.min_length or 0) - 1), kind.min_length or 0, most - 1, most, most + 1} - {-1})


def _fits(kind: Any, size: int) -> bool:
    return (kind.min_length or 0) <= size <= kind.max_length


@cache
def decoder(head: type) -> Any:
    return msgspec.msgpack.Decoder(head)


def is_taken(head: type, value: Any) -> bool:
    try:
        decoder(head).decode(msgspec.msgpack.encode(value))
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS, ids=lambda head: f"{head.__module__.split('.')[2]}.{head.__name__}")
def test_each_field_is_taken_up_to_its_bound_and_not_beyond(head: type) -> None:
    kind = inspect.type_info(head)
    assert is_taken(head, minimal(kind))
    wrong = [case.where for case in cases(kind, head.__name__) if is_taken(head, case.value) != case.taken]
    assert wrong == []


def test_a_field_without_a_bound_is_found() -> None:
    class Planted(msgspec.Struct, array_like=True, tag=1):
        number: int

    with pytest.raises(Unbounded, match=r"Planted\.0"):
        list(cases(inspect.type_info(Planted), "Planted"))
