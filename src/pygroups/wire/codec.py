"""The codec: encodes runs and their heads as frames, and decodes frames.  The codec checks the type of every field."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Union

import msgspec
from msgspec import Meta

from pygroups.core.address import Address, Name
from pygroups.core.errors import UNDECODABLE, PeerError
from pygroups.core.limits import BODY_MAX, FRAME_FILL, HEADS_MAX, RUN_MESSAGES_MAX, RUNS_PER_FRAME_MAX
from pygroups.core.run import Run

from .frame import HEADER, Checksum, Seal

_Number = Annotated[int, Meta(ge=0, le=1 << 62)]
_Count = Annotated[int, Meta(ge=0, le=RUN_MESSAGES_MAX)]
_Body = Annotated[bytes, Meta(max_length=BODY_MAX)]
_Dest = Annotated[str, Meta(max_length=32)]  # the receiver's incarnation, or nothing for a multicast

# A packet's outer parts are written by hand: an encoder would copy each body into a buffer that it grows as it goes.
_PACKET: Final = b"\x93"  # an array of 3: sender, dest, runs
_RUN: Final = b"\x96"  # an array of 6: origin, first, index, count, heads, body
_ARRAY16: Final = 0xDC  # in front of its length
_ARRAY: Final = struct.Struct(">BH")
_BIN32: Final = 0xC6
_BINARY: Final = struct.Struct(">BI")
OUTER_MAX: Final = 112  # the bytes of a packet beside its runs, with the longest names


class Codec:
    """Frames of one group, for stacks whose layers have these heads.

    `heads` are msgspec structs with `array_like=True` and an integer `tag` each, no two alike (TypeError otherwise).
    With `frame_bytes` a frame of several runs is no larger than that, header included; a frame of one run may be.
    Without `seal` frames have a checksum.
    """

    def __init__(
        self, group: str, heads: Iterable[type], frame_bytes: int | None = None, seal: Seal | None = None
    ) -> None:
        any_head: Any = Union[tuple(heads)]  # noqa: UP007 (the members are known at run time only)
        any_heads = Annotated[tuple[any_head, ...], Meta(max_length=HEADS_MAX)]
        self._wire_run: Any = msgspec.defstruct(
            "WireRun",
            [
                ("origin", Address | None),
                ("first", _Number),
                ("index", _Number),
                ("count", _Count),
                ("heads", any_heads),
                ("body", _Body),
            ],
            array_like=True,
        )
        runs = Annotated[list[self._wire_run], Meta(max_length=RUNS_PER_FRAME_MAX)]  # type: ignore[name-defined]
        self._packet: Any = msgspec.defstruct(
            "Packet", [("sender", Name), ("dest", _Dest), ("runs", runs)], array_like=True
        )
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(self._packet)
        self.seal: Seal = seal or Checksum(group)
        self.next_number = 0  # of the next frame
        self._room = None if frame_bytes is None else frame_bytes - HEADER.size - OUTER_MAX

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        """The frames for `runs`, as few as FRAME_FILL allows.  Without `dest` (a multicast) all receivers get the
        same."""
        encode, room = self._encoder.encode, self._room
        frames: list[bytes] = []
        pieces: list[bytes] = []
        size = count = 0
        for run in runs:
            body = run.body
            head = encode((run.origin, run.first, run.index, run.count, run.heads))
            if room is not None and count and size + len(head) + _BINARY.size + len(body) > room:
                frames.append(self._frame(me, dest, count, pieces))
                pieces, size, count = [], 0, 0
            pieces += (_RUN + head[1:] + _BINARY.pack(_BIN32, len(body)), body)
            size += len(head) + _BINARY.size + len(body)
            count += 1
            if size >= FRAME_FILL or count == RUNS_PER_FRAME_MAX:
                frames.append(self._frame(me, dest, count, pieces))
                pieces, size, count = [], 0, 0
        if count:
            frames.append(self._frame(me, dest, count, pieces))
        return frames

    def _frame(self, me: Address, dest: Address | None, count: int, runs: list[bytes]) -> bytes:
        """A frame with `count` encoded runs.  Each body is copied once, into the frame."""
        names = self._encoder.encode((me.name, "" if dest is None else dest.incarnation))
        pieces = [_PACKET + names[1:] + _ARRAY.pack(_ARRAY16, count), *runs]
        self.next_number += 1
        return self.seal.sealed(pieces, me, self.next_number - 1)

    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]:
        """The runs of a frame for `me`.  Raises SealError if the frame is not authentic, and PeerError for any other
        bytes.

        A length field alone allocates no memory: the memory grows with the bytes that are there.  Bodies stay encoded;
        core.run.payloads_of decodes and checks them.
        """
        incarnation, number, packed = self.seal.open(memoryview(frame))
        try:
            packet: Any = self._decoder.decode(packed)
        except UNDECODABLE as error:
            raise PeerError("malformed packet") from error
        if packet.dest and packet.dest != me.incarnation:
            raise PeerError("for another incarnation")
        src = Address(packet.sender, incarnation)
        if src == me:
            raise PeerError("frame of this process")
        dest = me if packet.dest else None
        runs = []
        for wire in packet.runs:
            whole = wire.origin is not None  # the run has payloads, or a piece of one
            if whole != (wire.count > 0 or wire.index > 0) or whole != (wire.first > 0):
                raise PeerError("malformed run")
            if whole != bool(wire.body) and not (whole and wire.origin == me and dest is None):  # core/own_bodies.py
                raise PeerError("malformed run")
            if wire.index and wire.count > 1:
                raise PeerError("malformed run")
            if not whole and not wire.heads:
                raise PeerError("empty run")
            what = (wire.origin, wire.first, wire.index, wire.count, wire.body)
            runs.append(Run(src, dest, wire.heads, *what, None, 0, number))
        return runs
