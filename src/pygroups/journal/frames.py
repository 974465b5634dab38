"""Frames and segments as bytes: how records become a frame, and how frames are found again in a damaged segment.

No files here: the writer, the reader and the simulator share these functions.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from xxhash import xxh32_intdigest

from .schema import FIELDS, FRAME_BODY_MAX, FRAME_HEAD_BYTES, HEADER, MAGIC, PREAMBLE, PREFIX, VERSION

# What a caller hands over: kind, the view it happened in, and the fields of its kind that are filled.
Record = tuple[str, tuple[int, str] | None, Mapping[str, object]]

_FRAME_HEAD: Final = struct.Struct("<II")
_FIELD_SETS: Final = {kind: frozenset(names) for kind, names in FIELDS.items()}
_LENGTHS: Final = {kind: len(PREFIX) + len(names) for kind, names in FIELDS.items()}
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode
# The beginning of a frame's body: an array, in it an array, in it a kind. Where a frame may begin after damage.
_BODY_BEGINS: Final = re.compile(
    rb"(?=(?:[\x91-\x9f]|\xdc..|\xdd....)(?:[\x91-\x9f]|\xdc..)(?:[\xa4-\xbf][a-z_]{4}))", re.DOTALL
)


@dataclass(frozen=True)
class Header:
    """Whose segment it is; `in_force` are the records that a `uniform` member repeats at a rotation."""

    group: str
    member: str
    incarnation: str
    profile: str
    version: str
    host: str
    boot_id: str
    in_force: list[list[Any]]


@dataclass(frozen=True)
class Frame:
    """The decoded records of one frame, which begins at `offset`."""

    offset: int
    records: list[list[Any]]


@dataclass(frozen=True)
class Damage:
    """A place that could not be read. `torn` says that the segment may simply have ended within a write."""

    offset: int
    reason: str
    torn: bool = False


def rows_of(records: Sequence[Record], index: int, time_us: int, mono_us: int) -> list[list[Any]]:
    """The arrays that stand for `records` in a frame, the first of them with number `index`.

    Raises ValueError for an unknown kind or a field that its kind does not have.
    """
    rows = []
    for at, (kind, view, fields) in enumerate(records, index):
        if kind not in FIELDS or not fields.keys() <= _FIELD_SETS[kind]:
            raise ValueError(_misfit(kind, fields))
        rows.append([kind, at, time_us, mono_us, view, *map(fields.get, FIELDS[kind])])
    return rows


def _misfit(kind: str, fields: Mapping[str, object]) -> str:
    if kind not in FIELDS:
        return f"{kind!r} is no kind of journal record"
    unknown = sorted(fields.keys() - _FIELD_SETS[kind])
    return f"a {kind!r} record has no field {unknown[0]!r}"


def frame_of(rows: Sequence[object]) -> bytes:
    """One frame over arrays that `rows_of` made."""
    body = _encode(rows)
    return _FRAME_HEAD.pack(len(body), xxh32_intdigest(body)) + body


def encode_frame(records: Sequence[Record], index: int, time_us: int, mono_us: int) -> bytes:
    """One frame with `records`, numbered from `index`; times in microseconds."""
    return frame_of(rows_of(records, index, time_us, mono_us))


def segment_beginning(header: Header) -> bytes:
    """The first bytes of a segment: preamble and header frame."""
    return PREAMBLE + frame_of([[getattr(header, name) for name in HEADER]])


def walk(data: bytes) -> Iterator[Header | Frame | Damage]:
    """What a segment holds, in order: its header first, then frames; damage where it lies. It never raises."""
    trouble = _preamble_trouble(data)
    if trouble is not None:
        yield trouble
        return
    found = _frames(data, len(PREAMBLE))
    first = next(found, Damage(len(PREAMBLE), "the header is missing", torn=True))
    header = _header(first)
    if isinstance(header, Damage):
        yield header
        return
    yield header
    for frame in found:
        if isinstance(frame, Damage):
            yield frame
        else:
            yield from _checked_records(frame)


def _preamble_trouble(data: bytes) -> Damage | None:
    if data.startswith(PREAMBLE):
        return None
    if PREAMBLE.startswith(data):
        return Damage(0, "the segment ends before its header", torn=True)
    if data.startswith(MAGIC):
        return Damage(len(MAGIC), f"journal version {data[len(MAGIC)]} is not known, only version {VERSION}")
    return Damage(0, "this is not a journal segment")


def _header(first: Frame | Damage) -> Header | Damage:
    if isinstance(first, Damage):
        return Damage(first.offset, f"header: {first.reason}", first.torn)
    try:
        header = msgspec.convert(dict(zip(HEADER, first.records[0], strict=True)), Header)
    except (msgspec.ValidationError, ValueError, TypeError, IndexError):
        return Damage(first.offset, "the header is missing")
    return header


def _frames(data: bytes, offset: int) -> Iterator[Frame | Damage]:
    """Frames from `offset` on; after a damaged one goes on with the next that can be trusted."""
    while offset < len(data):
        length, trouble = _frame_at(data, offset)
        if trouble is not None:
            yield trouble
            offset = _next_frame(data, offset, length)
            continue
        begin = offset + FRAME_HEAD_BYTES
        try:
            records = _decode(memoryview(data)[begin : begin + length])
        except msgspec.DecodeError:
            records = None
        if isinstance(records, list):
            yield Frame(offset, records)
        else:
            yield Damage(offset, "the frame cannot be decoded")
        offset = begin + length


def _frame_at(data: bytes, offset: int) -> tuple[int, Damage | None]:
    """Length of the body, and what is wrong with the frame if anything is."""
    if len(data) - offset < FRAME_HEAD_BYTES:
        return 0, Damage(offset, "the segment ends within a frame", torn=True)
    length, checksum = _FRAME_HEAD.unpack_from(data, offset)
    begin = offset + FRAME_HEAD_BYTES
    if length > FRAME_BODY_MAX:
        return length, Damage(offset, f"bad length {length}")
    if begin + length > len(data):
        # Either the write was torn, or the length is damaged: then whole frames follow.
        torn = _next_frame(data, offset, length) == len(data)
        return length, Damage(offset, "the segment ends within a frame" if torn else f"bad length {length}", torn)
    if xxh32_intdigest(memoryview(data)[begin : begin + length]) != checksum:
        return length, Damage(offset, "bad checksum")
    return length, None


def _next_frame(data: bytes, offset: int, length: int) -> int:
    """Where to go on after a damaged frame: behind its length if a frame begins there, else the next that checks."""
    behind = offset + FRAME_HEAD_BYTES + length
    if behind == len(data) or _checks(data, behind):
        return behind
    for match in _BODY_BEGINS.finditer(data, offset + FRAME_HEAD_BYTES + 1):
        if _checks(data, match.start() - FRAME_HEAD_BYTES):
            return match.start() - FRAME_HEAD_BYTES
    return len(data)


def _checks(data: bytes, offset: int) -> bool:
    begin = offset + FRAME_HEAD_BYTES
    if begin >= len(data):
        return False
    length, checksum = _FRAME_HEAD.unpack_from(data, offset)
    if not 0 < length <= len(data) - begin:
        return False
    return bool(xxh32_intdigest(memoryview(data)[begin : begin + length]) == checksum)


def _checked_records(frame: Frame) -> Iterator[Frame | Damage]:
    """The frame with the records that have the shape of their kind; each other one is damage of its own."""
    lengths = _LENGTHS
    good = []
    for record in frame.records:
        try:
            fits = len(record) == lengths[record[0]]
        except (TypeError, KeyError, IndexError):
            fits = False
        if fits:
            good.append(record)
        else:
            yield Damage(frame.offset, f"a record has an unknown kind or shape: {str(record)[:60]}")
    yield Frame(frame.offset, good)
