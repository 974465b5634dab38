"""Frames and segments as bytes: the encoding of records, and the search for frames in a damaged segment.

This module uses no files. The writer, the reader and the simulator share its functions.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import msgspec
from xxhash import xxh32_intdigest

from .schema import FIELDS, FRAME_BODY_MAX, FRAME_HEAD_BYTES, HEADER, MAGIC, PREAMBLE, VERSIONS, services_of_v1

# A record from a caller: the kind, the view in which the event happened, and the filled fields of the kind.
Record = tuple[str, tuple[int, str] | None, Mapping[str, object]]

FRAME_HEAD: Final = struct.Struct("<II")
_FIELD_SETS: Final = {kind: frozenset(names) for kind, names in FIELDS.items()}
_encode: Final = msgspec.msgpack.Encoder().encode
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode: Final = msgspec.msgpack.Decoder().decode
# The beginning of a frame's body: an array, in it an array, in it a kind. Where a frame may begin after damage.
_BODY_BEGINS: Final = re.compile(
    rb"(?=(?:[\x91-\x9f]|\xdc..|\xdd....)(?:[\x91-\x9f]|\xdc..)(?:[\xa4-\xbf][a-z_]{4}))", re.DOTALL
)


_PREAMBLES: Final = tuple(MAGIC + bytes([version]) for version in VERSIONS)


@dataclass(frozen=True)
class Header:
    """The owner of a segment.

    `in_force`: the records that a member repeats in each new segment, where a majority decides each view.
    `services`: what its stack gives.
    """

    group: str
    member: str
    incarnation: str
    profile: str
    version: str
    host: str
    boot_id: str
    in_force: list[list[Any]]
    services: list[str]


class Frame(NamedTuple):
    """The decoded records of one frame, which begins at `offset`. Their shape is not checked yet."""

    offset: int
    records: list[list[Any]]


@dataclass(frozen=True)
class Damage:
    """A place that could not be read.

    `torn`: the segment may have ended during a write.  `lossy`: records that the member had acted on may be gone too.
    """

    offset: int
    reason: str
    torn: bool = False
    lossy: bool = False


def rows_of(records: Sequence[Record], index: int, time_us: int, mono_us: int) -> list[list[Any]]:
    """The arrays for `records` in a frame. The first record has the number `index`.

    Raises ValueError for an unknown kind, or for a field that the kind does not have.
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
    """One frame with the arrays that `rows_of` made."""
    body = _encode(rows)
    return FRAME_HEAD.pack(len(body), xxh32_intdigest(body)) + body


def encode_frame(records: Sequence[Record], index: int, time_us: int, mono_us: int) -> bytes:
    """One frame with `records`, numbered from `index`; times in microseconds."""
    return frame_of(rows_of(records, index, time_us, mono_us))


def segment_beginning(header: Header) -> bytes:
    """The first bytes of a segment: preamble and header frame."""
    return PREAMBLE + frame_of([[getattr(header, name) for name in HEADER]])


def walk(data: bytes, asked: re.Pattern[bytes] | None = None) -> Iterator[Header | Frame | Damage]:
    """The contents of a segment, in order: its header, then frames and damaged places. Never raises an exception.

    A complete frame whose body `asked` does not match is skipped without decoding.
    """
    trouble = preamble_trouble(data)
    if trouble is not None:
        yield trouble
        return
    first = next(_frames(data, len(PREAMBLE)), Damage(len(PREAMBLE), "the header is missing", torn=True))
    header = header_in(first)
    yield header
    if isinstance(header, Header):
        begin = frame_end(data, len(PREAMBLE))
        assert begin is not None  # the frame has just been decoded
        yield from _frames(data, begin, asked)


def frames_of(data: bytes, asked: re.Pattern[bytes] | None = None) -> Iterator[Frame | Damage]:
    """The frames in a piece of a segment that begins and ends with a frame. Offsets count from the start of the piece.

    A complete frame whose body `asked` does not match is skipped without decoding.
    """
    return _frames(data, 0, asked)


def frame_end(data: bytes, offset: int) -> int | None:
    """The end of the frame at `offset` if the frame is complete and its checksum right; otherwise None."""
    if offset >= len(data) or not checks(data, offset):
        return None
    return offset + FRAME_HEAD_BYTES + int.from_bytes(data[offset : offset + 4], "little")


def naming(kinds: Iterable[str]) -> re.Pattern[bytes]:
    """A pattern that matches the body of every frame with a record of one of `kinds`, and of some other frames."""
    return re.compile(b"|".join(re.escape(_encode(kind)) for kind in kinds) or rb"(?!)")


def preamble_trouble(data: bytes) -> Damage | None:
    """The damage of the first bytes of a segment; of zeros alone only if `data` is the whole segment."""
    if data.startswith(_PREAMBLES):
        return None
    if any(preamble.startswith(data) for preamble in _PREAMBLES):
        return Damage(0, "the segment ends before its header", torn=True)
    if _are_zeros(data):
        return _in_zeros(0)
    if data.startswith(MAGIC):
        known = " and ".join(map(str, VERSIONS))
        return Damage(len(MAGIC), f"journal version {data[len(MAGIC)]} is not known, only versions {known}")
    return Damage(0, "this is not a journal segment")


def header_in(first: Frame | Damage) -> Header | Damage:
    if isinstance(first, Damage):
        return replace(first, reason=f"header: {first.reason}")
    try:
        fields = [*first.records[0]]
        if len(fields) == len(HEADER) - 1:  # version 1
            fields.append(services_of_v1(fields[HEADER.index("profile")]))
        header = msgspec.convert(dict(zip(HEADER, fields, strict=True)), Header)
    except (msgspec.ValidationError, ValueError, TypeError, IndexError):
        return Damage(first.offset, "the header is missing")
    return header


def _frames(data: bytes, offset: int, asked: re.Pattern[bytes] | None = None) -> Iterator[Frame | Damage]:
    """The frames from `offset` on. After a damaged frame the walk continues with the next valid frame."""
    view, end = memoryview(data), len(data)
    while offset < end:
        body, trouble = frame_at(view, offset)
        if trouble is not None:
            yield trouble
            offset = next_frame(data, offset)
            continue
        if asked is not None and asked.search(body) is None:
            offset += FRAME_HEAD_BYTES + len(body)
            continue
        try:
            records = _decode(body)
        except UNDECODABLE:
            records = None
        if isinstance(records, list):
            yield Frame(offset, records)
        else:
            yield Damage(offset, "the frame cannot be decoded")
        offset += FRAME_HEAD_BYTES + len(body)


def frame_at(data: memoryview, offset: int) -> tuple[memoryview, Damage | None]:
    """The body of the frame at `offset`, and its damage, if there is any."""
    begin = offset + FRAME_HEAD_BYTES
    if begin > len(data):
        return data[:0], Damage(offset, "the segment ends within a frame", torn=True)
    length, checksum = FRAME_HEAD.unpack_from(data, offset)
    if length == checksum == 0 and _are_zeros(data[offset:]):
        return data[:0], _in_zeros(offset)
    body = data[begin : begin + length]
    if len(body) < length or length > FRAME_BODY_MAX:
        # Either the write was torn, or the length is damaged: then whole frames follow.
        torn = next_frame(bytes(data), offset) == len(data)
        return body, Damage(offset, "the segment ends within a frame" if torn else f"bad length {length}", torn)
    if xxh32_intdigest(body) != checksum:
        return body, Damage(offset, "bad checksum")
    return body, None


def _are_zeros(data: bytes | memoryview) -> bool:
    return bytes(data).count(0) == len(data)


def _in_zeros(offset: int) -> Damage:
    """A file system may have given the segment its length before a loss of power, and not its bytes."""
    return Damage(offset, "the segment ends in zeros, as after a loss of power", torn=True, lossy=True)


def next_frame(data: bytes, offset: int) -> int:
    """The offset after a damaged frame: behind its length if a frame begins there, otherwise the next frame with a
    right checksum."""
    if len(data) - offset < FRAME_HEAD_BYTES:
        return len(data)
    behind = offset + FRAME_HEAD_BYTES + int.from_bytes(data[offset : offset + 4], "little")
    if behind == len(data) or checks(data, behind):
        return behind
    for match in _BODY_BEGINS.finditer(data, offset + FRAME_HEAD_BYTES + 1):
        if checks(data, match.start() - FRAME_HEAD_BYTES):
            return match.start() - FRAME_HEAD_BYTES
    return len(data)


def checks(data: bytes, offset: int) -> bool:
    begin = offset + FRAME_HEAD_BYTES
    if begin >= len(data):
        return False
    length, checksum = FRAME_HEAD.unpack_from(data, offset)
    if not 0 < length <= len(data) - begin:
        return False
    return bool(xxh32_intdigest(memoryview(data)[begin : begin + length]) == checksum)
