"""What the tests of the wire are made of: values of every head, packets by hand, a codec and its two ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from pygroups.core.address import Address
from pygroups.core.limits import RUN_MESSAGES_MAX
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, Ballot, MergeId, ViewId
from pygroups.layers.merge2.layer import Merge2
from pygroups.layers.profiles import PROFILES
from pygroups.wire.codec import Codec
from pygroups.wire.frame import HEADER, Checksum

A, B, C = (Address(name, f"{number:016x}") for number, name in enumerate("ABC", 1))
HEADS: tuple[type, ...] = tuple(
    dict.fromkeys([*(head for profile in PROFILES.values() for head in profile.heads()), *Merge2.heads])
)
GROUP = "orders"

incarnations = st.integers(0, (1 << 64) - 1).map("{:016x}".format)
addresses = st.builds(Address, st.sampled_from(["A", "B", "replica-7.eu_west", "N" * 64]), incarnations)
ballots = st.builds(Ballot, st.integers(0, 1 << 62), addresses)
merge_ids = st.builds(MergeId, st.integers(0, 1 << 62), addresses)
view_ids = st.builds(ViewId, st.integers(0, 1 << 62), addresses)


def a_codec(group: str = GROUP) -> Codec:
    return Codec(group, HEADS)


def sealed(packet: bytes, sender: Address = A, group: str = GROUP) -> bytes:
    """A frame around `packet` whose checksum is right, whatever the packet is."""
    return Checksum(group).sealed([packet], sender, 0)


def packet_of(frame: bytes) -> bytes:
    return frame[HEADER.size :]


def runs_of(frame: bytes) -> bytes:
    """The runs in the packet of a frame, encoded."""
    _, _, runs = msgspec.msgpack.decode(packet_of(frame), type=tuple[str, str, msgspec.Raw])
    return bytes(runs)


def packed(*runs: object, sender: object = "A", dest: object = "") -> bytes:
    """A packet of runs that need not be runs."""
    return msgspec.msgpack.encode([sender, dest, runs])


def wire_run(*heads: object, origin: object = None, first: object = 0, count: object = 0, body: object = b"") -> object:
    return [origin, first, 0, count, list(heads), body]


def same(sent: Sequence[Run], came: Sequence[Run]) -> bool:
    """Whether these are the same runs as far as the wire carries them."""
    return [seen(run) for run in sent] == [seen(run) for run in came]


def seen(run: Run) -> tuple[object, ...]:
    return run.src, run.dest, run.heads, run.origin, run.first, run.index, run.count, run.body


# -- values of every type that a head may hold, from the bounds that the type states


@st.composite
def views(draw: st.DrawFn) -> AgreedView:
    members = draw(st.lists(addresses, min_size=1, max_size=3, unique=True))
    return AgreedView(draw(view_ids), tuple(members), tuple(f"host-{n}:1" for n in range(len(members))))


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may hold; collections stay small: their limits have tests."""
    match kind:
        case inspect.IntType():
            return st.integers(kind.ge if kind.ge is not None else -(1 << 63), kind.le or (1 << 63) - 1)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.StrType():
            return st.text(min_size=kind.min_length or 0, max_size=min(kind.max_length or 20, 20))
        case inspect.BytesType():
            return st.binary(max_size=300)
        case inspect.ListType():
            return st.lists(values(kind.item_type), max_size=3)
        case inspect.VarTupleType():
            return st.lists(values(kind.item_type), min_size=kind.min_length or 0, max_size=3).map(tuple)
        case inspect.TupleType():
            return st.tuples(*map(values, kind.item_types))
        case inspect.DictType():
            return st.dictionaries(values(kind.key_type), values(kind.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of(*map(values, kind.types))
        case inspect.EnumType():
            return st.sampled_from(kind.cls)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.NamedTupleType():
            return {Address: addresses, Ballot: ballots, MergeId: merge_ids, ViewId: view_ids}[kind.cls]
        case inspect.StructType():
            return structs(kind.cls)
    raise AssertionError(f"no values of {kind} are known here: a head may hold them, so add them")


def structs(cls: Any) -> st.SearchStrategy[Any]:
    if cls is AgreedView:
        return views()
    fields = inspect.type_info(cls).fields  # type: ignore[attr-defined]
    return st.builds(cls, *[values(field.type) for field in fields])


heads = st.sampled_from(HEADS).flatmap(structs)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run from A to B or to all, with payloads of somebody or without any."""
    src, dest = A, draw(st.sampled_from([B, None]))
    stack = tuple(draw(st.lists(heads, min_size=1, max_size=3)))
    if draw(st.booleans()):
        return Run(src, dest, stack)
    first = draw(st.integers(1, (1 << 62) - RUN_MESSAGES_MAX))
    index = draw(st.integers(0, 9))
    if index:  # a piece of a payload
        return Run(
            src, dest, stack, draw(addresses), first, index, draw(st.integers(0, 1)), draw(st.binary(min_size=1))
        )
    payloads = draw(st.lists(st.binary(max_size=80), min_size=1, max_size=5))
    return Run(src, dest, stack, draw(addresses), first, 0, len(payloads), pack(payloads))
