"""A run: payloads that travel as one, numbered, ordered, retransmitted and delivered together, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .address import Address

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[bytes])


class Loose:
    """Marks a head whose loss costs little, and which a later one replaces: to one member it goes without a connection,
    neither numbered nor acknowledged."""

    __slots__ = ()


class Run(msgspec.Struct, frozen=True, eq=False):
    """An immutable batch of payloads by one origin; adding or taking a head makes a new run over the same body.

    So a layer may keep a run to send it again while the layers below go on adding their heads.  Between two layers
    of the same member a run may also be no batch at all: `count` is 0, and the head is the message (see Layer.tell).
    """

    src: Address  # who put it on the wire: not always who wrote it
    dest: Address | None  # None: every member of the view
    heads: tuple[object, ...] = ()  # the last one was pushed last, by the lowest layer so far
    origin: Address | None = None  # who wrote the payloads; None when there are none
    first: int = 0  # the origin's number of the first payload, from 1 in its life
    index: int = 0  # 0, or which piece of one payload this is
    count: int = 0
    body: bytes = b""  # the payloads, still packed
    stream: Address | None = None  # the numbered stream it came in, and its number there: for marks and the journal
    seq: int = 0

    @property
    def next(self) -> int:
        """The origin's number after the last payload of this run."""
        return self.first + self.count

    @property
    def head(self) -> object:
        """The head that was pushed last, or None."""
        return self.heads[-1] if self.heads else None

    def push(self, head: object) -> Run:
        """The same run under one more head."""
        return self._with(self.src, self.dest, (*self.heads, head))

    def pop(self) -> Run:
        """The same run without its last head."""
        return self._with(self.src, self.dest, self.heads[:-1])

    def readdressed(self, src: Address, dest: Address | None) -> Run:
        """The same run on another way: from `src`, to `dest`."""
        return self._with(src, dest, self.heads)

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

    def _with(self, src: Address, dest: Address | None, heads: tuple[object, ...]) -> Run:
        return Run(
            src,
            dest,
            heads,
            self.origin,
            self.first,
            self.index,
            self.count,
            self.body,
            self.stream,
            self.seq,
        )

    def __repr__(self) -> str:
        what = f"{self.origin}#{self.first}+{self.count}" if self.count else "-"
        return f"Run({self.src}>{self.dest or '*'} {what} {list(self.heads)})"


def pack(payloads: Sequence[bytes]) -> bytes:
    """The body of a run of these payloads: one msgpack array of binary strings."""
    return _encoder.encode(payloads)


def unpack(body: bytes) -> list[bytes]:
    """The payloads of a body of our own.  Raises msgspec.DecodeError on bytes that are none; see payloads_of()."""
    return _decoder.decode(body)


def payloads_of(run: Run) -> list[bytes] | None:
    """The payloads of a run that may have come from anybody; None when its body does not hold what it says.

    Bodies are not looked into on their way: that would cost as much as opening them once more.  Whoever opens one skips
    it if it is malformed; all members got the same bytes, so all of them skip the same.
    """
    try:
        payloads = _decoder.decode(run.body)
    except msgspec.DecodeError:
        return None
    return payloads if len(payloads) == run.count else None
