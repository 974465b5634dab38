"""Inputs made from inputs: bytes that are damaged, msgpack whose values are exchanged, and heads that are forged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

from pygroups.blocks.replica import MACHINES
from pygroups.blocks.wire import command
from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE
from pygroups.core.run import Run
from pygroups.core.view import ViewId
from pygroups.drivers.hello import DiscoveryQuestion, DiscoveryReply, Hello, Welcome, packed
from pygroups.journal.frames import Header, frame_of, segment_beginning
from pygroups.journal.schema import FIELDS
from pygroups.sim.world.forger import Forger
from tests.fuzz.targets import SEPARATOR, stranger
from tests.wire.fuzz import damaged_bytes, damaged_values, lies
from tests.wire.samples import HEADS, A, B, C, a_codec, packet_of

Bytes = Callable[[random.Random], bytes]
VIEWS: Final = tuple(ViewId(number, leader) for number in (3, 2, 1) for leader in (A, B))
ADDRESSES: Final = (A, B, C, stranger())
CODEC: Final = a_codec()
ENCODE: Final = msgspec.msgpack.Encoder().encode
ROWS: Final = [["view", -1, 1.5, "x", [1], ["A@1", b"A@1"], {"A@1": 1, 2: "x"}, [[["A"]]], 1 << 63, True]]
LARGEST: Final = 4_096  # bytes of an input
BYTES: Final = bytes.fromhex("00017f80818f90919fa0a1bfc0c1c2c3c4c6caccCfd3d4d9dcdfff")
DEEP: Final = (b"\x91", b"\x81\xa1x", b"[", b'{"x":')  # one level of nesting


def near(data: bytes, places: int) -> Iterator[bytes]:
    """Inputs that differ from `data` in one place: shorter, with another byte, with another bit."""
    rng = random.Random(len(data) * 257 + sum(data[:64]))
    for _ in range(places):
        at = rng.randrange(len(data) + 1)
        yield data[:at]
        yield data[:at] + bytes([rng.choice(BYTES)]) + data[at + 1 :]
        yield data[:at] + bytes(one ^ 1 << rng.randrange(8) for one in data[at : at + 1]) + data[at + 1 :]


def forged_packet(forger: Forger, sender: Address = A) -> bytes:
    """A packet with forged heads, one or several on each run, with payloads or without."""
    rng, runs = forger.rng, []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        heads = tuple(forger.head(rng.choice(HEADS)) for _ in range(rng.choice((1, 1, 2, 2, 3))))
        runs.append(Run(sender, None, heads, *(forger.payload() if rng.random() < 0.4 else ())))
    return packet_of(CODEC.encode(sender, rng.choice((None, B)), runs)[0])


def forged_hello(forger: Forger) -> bytes:
    """A handshake or a question of discovery, behind what stands before it in a datagram or on a connection."""
    rng = forger.rng
    body = packed(forger.head(rng.choice((Hello, Welcome, DiscoveryQuestion, DiscoveryReply))))
    first = rng.choice((b"Q", b"A", b"F", b"R", b"S", len(body).to_bytes(4, "big")))
    return first + (rng.randbytes(8) if first in (b"Q", b"A") else b"") + body


class OpForger(Forger):
    """Makes the commands of blocks, too."""

    def value(self, kind: inspect.Type) -> Any:
        if isinstance(kind, inspect.RawType):
            return msgspec.Raw(msgspec.msgpack.encode(self.rng.choice((None, 1, "a", [1], {"a": 1}))))
        if isinstance(kind, inspect.FloatType):
            return self.rng.choice((0.0, -1.0, 1.5, 1e300, float("inf"), float("nan")))
        if isinstance(kind, inspect.AnyType):
            return self.rng.choice((None, 1, "a", b"x", [1]))
        return super().value(kind)


def forged_commands(forger: Forger) -> bytes:
    """Commands for blocks, one after another."""
    rng, made = forger.rng, []
    for _ in range(rng.randint(1, 8)):
        kind, machine = rng.choice(list(MACHINES.items()))
        op = OpForger(rng, forger.addresses, forger.views).value(inspect.type_info(machine.ops))
        made.append(command(rng.randint(0, 9), (kind, "x"), op))
    return SEPARATOR.join(made)


def damaged_segment(rng: random.Random) -> bytes:
    """A segment of a journal with right checksums and wrong records: the reader looks at each of them."""
    data = segment_beginning(Header("g", "A", "1" * 16, "total", "1", "h", "b", [], []))
    for at in range(rng.randint(1, 12)):
        kind = rng.choice(list(FIELDS))
        rows = [[kind, at, 1, 1, [1, "A"], *([None] * len(FIELDS[kind]))] for _ in range(rng.randint(1, 6))]
        data += frame_of(msgspec.msgpack.decode(damaged_values(rng, ENCODE(rows), ENCODE(ROWS))))
    return data


class Mutator:
    """Makes the inputs of one target.  `plain` changes bytes: the one of the guided fuzzer, if there is one."""

    def __init__(self, target: str, plain: Callable[[bytes, int], bytes] | None) -> None:
        self.target = target
        self.plain = plain

    def mutated(self, data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
        """An input made from `data`, and from another one of its kind."""
        other = rng.choice(others) if others else data
        how = rng.random()
        if how < 0.15:
            made = self._changed(data, rng)
        elif how < 0.35:
            made = self._forged(rng) or self._changed(data, rng)
        elif how < 0.37:
            made = self._deep(data, rng)
        else:
            made = self._damaged(data, other, rng)
        return made[:LARGEST]

    def with_lies(self, data: bytes, other: bytes, rng: random.Random) -> bytes:
        """A packet made from `data` and from another one, with values that are not true; a few are no packets."""
        try:
            return lies(rng, data, other) if rng.random() < 0.95 else self._changed(data, rng)
        except (*UNDECODABLE, LookupError, TypeError, AttributeError, OverflowError):
            return self._changed(data, rng)  # it is no packet any more

    def _changed(self, data: bytes, rng: random.Random) -> bytes:
        return damaged_bytes(rng, data, data) if self.plain is None else self.plain(data, LARGEST)

    def _forged(self, rng: random.Random) -> bytes:
        forger = Forger(rng, ADDRESSES, VIEWS)
        if self.target == "packet":
            return forged_packet(forger)
        if self.target in ("datagram", "connection"):
            return forged_hello(forger)
        if self.target == "command":
            return forged_commands(forger)
        return damaged_segment(rng) if self.target == "journal" else b""

    def _damaged(self, data: bytes, other: bytes, rng: random.Random) -> bytes:
        """Msgpack with other values, behind as many bytes as its kind has there."""
        before = self._before(data)
        how: Any = rng.choices((damaged_bytes, damaged_values, lies), (1, 1, 3 if self.target == "packet" else 0))[0]
        try:
            body = how(rng, data[before:], other[self._before(other) :])
        except (*UNDECODABLE, LookupError, TypeError, AttributeError, OverflowError):
            return damaged_bytes(rng, data, other)  # it is no packet any more
        if self.target == "connection" and rng.random() < 0.8:
            return len(body).to_bytes(4, "big") + bytes(body)
        return data[:before] + bytes(body)

    def _deep(self, data: bytes, rng: random.Random) -> bytes:
        """Lists in lists, in place of some bytes or as one more element of an array."""
        nested, before = rng.choice(DEEP) * rng.choice((100, LARGEST // 4)), self._before(data)
        at = rng.choice((before, rng.randrange(before, len(data) + 1))) if len(data) >= before else len(data)
        if at == before < len(data) and 0x90 <= data[at] < 0x9F:
            made = data[:at] + bytes([data[at] + 1]) + data[at + 1 :] + b"\x91" * (LARGEST // 4) + b"\xc0"
        else:
            made = data[:at] + nested + data[at:]
        return len(made[4:]).to_bytes(4, "big") + made[4:] if self.target == "connection" else made

    def _before(self, data: bytes) -> int:
        if self.target == "connection":
            return 4
        if self.target == "datagram":
            return 9 if data[:1] in (b"Q", b"A") else 1
        return 1 if self.target == "command" else 0
