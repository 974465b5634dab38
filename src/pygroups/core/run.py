"""A run: a batch of payloads that is numbered, ordered, retransmitted and delivered as one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from .address import Address
from .errors import UNDECODABLE

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[bytes])


class Loose:
    """Base of heads whose loss does little harm, because a later head replaces them.  A unicast with such a head needs
    no connection: it is neither numbered nor acknowledged."""

    __slots__ = ()


class Tracked:
    """Base of heads on runs with payload whose layer wants to know when a unicast arrives: UNICAST2 reports that the
    unicast waits (`Unacknowledged`) and that the peer has the unicast (`Acknowledged`).  Such a head is hashable."""

    __slots__ = ()


class OfApplication:
    """Base of heads that only mark a unicast of the application: UNICAST2 journals and reports such a run like one
    without heads."""

    __slots__ = ()


@final
class Run(msgspec.Struct, frozen=True, eq=False):
    """An immutable batch of payloads of one origin.  Adding or removing a head makes a new run with the same body.

    A layer can therefore keep a run for retransmission while the layers below add their heads.  A run can also carry a
    message of a layer without any payload: then `count` is 0, and the head is the message (see Layer.tell).
    """

    src: Address  # the member that put the run on the wire; it can differ from the origin
    dest: Address | None  # None: every member of the view
    heads: tuple[object, ...] = ()  # in the order in which layers pushed them, from the top of the stack down
    origin: Address | None = None  # the member whose application sent the payloads; None without payloads
    first: int = 0  # the number of the first payload; the origin counts its payloads from 1
    index: int = 0  # 0, or the index of this piece of one payload
    count: int = 0
    body: bytes = b""  # the payloads, packed
    stream: Address | None = None  # the numbered stream that the run came on
    seq: int = 0  # the run's number in that stream
    frame: int = -1  # of a received run: the number of its frame at the sender; a run that a layer makes of it has none

    @property
    def next(self) -> int:
        """The number after the last payload of this run."""
        return self.first + self.count

    def columns(self) -> dict[str, object]:
        """The journal's columns that identify a run of payloads."""
        assert self.origin is not None
        return {
            "origin": self.origin.name,
            "origin_incarnation": self.origin.incarnation,
            "first": self.first,
            "count": self.count,
            "bytes": len(self.body),
        }

    @property
    def head(self) -> object:
        """The head that was pushed last, or None."""
        return self.heads[-1] if self.heads else None

    def push(self, head: object) -> Run:
        """The same run with one more head."""
        return Run(
            self.src,
            self.dest,
            (*self.heads, head),
            self.origin,
            self.first,
            self.index,
            self.count,
            self.body,
            self.stream,
            self.seq,
        )

    def pop(self) -> Run:
        """The same run without its last head."""
        return Run(
            self.src,
            self.dest,
            self.heads[:-1],
            self.origin,
            self.first,
            self.index,
            self.count,
            self.body,
            self.stream,
            self.seq,
        )

    def readdressed(self, src: Address, dest: Address | None) -> Run:
        """The same run with another sender and another destination."""
        return Run(
            src,
            dest,
            self.heads,
            self.origin,
            self.first,
            self.index,
            self.count,
            self.body,
            self.stream,
            self.seq,
        )

    def placed(self, stream: Address, seq: int) -> Run:
        """The same run without its last head, as number `seq` of `stream`."""
        return Run(
            self.src,
            self.dest,
            self.heads[:-1],
            self.origin,
            self.first,
            self.index,
            self.count,
            self.body,
            stream,
            seq,
        )

    def __repr__(self) -> str:
        what = f"{self.origin}#{self.first}+{self.count}" if self.count else "-"
        return f"Run({self.src}>{self.dest or '*'} {what} {list(self.heads)})"


def pack(payloads: Sequence[bytes]) -> bytes:
    """The body of a run of these payloads: one msgpack array of binary strings."""
    return _encoder.encode(payloads)


def unpack(body: bytes) -> list[bytes]:
    """The payloads of a body that pack() made.  Raises msgspec.DecodeError for other bytes; see payloads_of()."""
    return _decoder.decode(body)


def payloads_of(run: Run) -> list[bytes] | None:
    """The payloads of a run from any peer; None if the body is malformed or has another number of payloads.

    No layer checks a body on its way, because a check costs as much as a decoding.  A member that decodes a body skips
    it if it is malformed.  All members have the same bytes, so all of them skip the same runs.
    """
    try:
        payloads = _decoder.decode(run.body)
    except UNDECODABLE:
        return None
    return payloads if len(payloads) == run.count else None
