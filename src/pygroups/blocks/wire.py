"""The messages and the state of blocks as bytes.

A message of a block begins with PREFIX.  The byte 0xC1 begins no text in UTF-8, no JSON and no msgpack, so messages of
the program pass beside those of the blocks.  The last byte of PREFIX is the version of the format.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from pygroups.core.errors import UNDECODABLE

PREFIX: Final = b"\xc1B\x01"
COMMAND: Final = PREFIX + b"c"  # for all members, in one order: changes a replicated block
NOTE: Final = PREFIX + b"n"  # for the block of this name in the receiving process alone
UNSERVED: Final = PREFIX + b"u"  # the answer to such a message from a process without this block
NAME_MAX: Final = 256  # characters

Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
BlockKey = tuple[str, str]  # the kind of a block, and its name
Seconds = Annotated[float, Meta(ge=0)]
Time = Annotated[int, Meta(ge=0, lt=1 << 62)]  # microseconds since 1970


def now_us() -> int:
    """The time of this machine."""
    return time.time_ns() // 1_000


class Command(msgspec.Struct, array_like=True):
    """A change of one replicated block: `call` is the number of the call in the process that sends it."""

    call: Annotated[int, Meta(ge=0)]
    kind: str
    name: Name
    op: msgspec.Raw


class Note(msgspec.Struct, array_like=True):
    """A message to a block of a process, outside of the replicated state.  With a `request` it wants an answer."""

    kind: str
    name: Name
    request: Annotated[int, Meta(ge=0)]
    body: msgspec.Raw


class Unserved(msgspec.Struct, array_like=True):
    """The receiver of a note has no such block, so nothing answers its `request`."""

    kind: str
    name: Name
    request: Annotated[int, Meta(ge=0)]


class SavedBlock(msgspec.Struct, array_like=True):
    kind: str
    name: Name
    state: msgspec.Raw


class Saved(msgspec.Struct, array_like=True):
    """The state of all replicated blocks at the start of a view."""

    version: int
    token: Annotated[int, Meta(ge=0)]
    blocks: list[SavedBlock]


_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")
_decoders: Final[dict[bytes, msgspec.msgpack.Decoder[Any]]] = {
    COMMAND: msgspec.msgpack.Decoder(Command),
    NOTE: msgspec.msgpack.Decoder(Note),
    UNSERVED: msgspec.msgpack.Decoder(Unserved),
}
encode: Final = _encoder.encode


def command(call: int, key: BlockKey, op: object) -> bytes:
    """The message that changes the block `key`."""
    return COMMAND + encode((call, *key, op))


def note(key: BlockKey, body: object, request: int = 0) -> bytes:
    """The message for the block `key` of a process."""
    return NOTE + encode((*key, request, body))


def unserved(note: Note) -> bytes:
    """The answer to a note whose block is not there."""
    return UNSERVED + encode(Unserved(note.kind, note.name, note.request))


def opened(payload: bytes) -> Command | Note | Unserved | None:
    """The message of a block; None for a malformed one.  `payload` begins with PREFIX."""
    decoder = _decoders.get(payload[: len(COMMAND)])
    if decoder is None:
        return None
    try:
        found: Command | Note | Unserved = decoder.decode(memoryview(payload)[len(COMMAND) :])
    except UNDECODABLE:
        return None
    return found
