"""The decoders: everything that reads bytes from outside, one function for each.  It gets any bytes, and raises for a
bug only."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pygroups.blocks import wire as blocks
from pygroups.blocks.replica import Replica
from pygroups.core.address import Address, parse_address
from pygroups.core.errors import Error, PeerError, UsageError
from pygroups.core.limits import Config
from pygroups.core.run import payloads_of
from pygroups.drivers.contacts import parse_contact
from pygroups.drivers.discovery.entries import _entry
from pygroups.drivers.discovery.remembered import times_in
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.hello import DiscoveryReply
from pygroups.drivers.local_commands import command_in
from pygroups.drivers.rate_limited import RateLimitedLog
from pygroups.drivers.tcp.door import Door
from pygroups.drivers.tcp.incoming import Incoming
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.journal.reader import Segment, read_segments
from pygroups.wire.codec import Codec
from pygroups.wire.ring import Secret, parse_ring, ring_of_bytes
from pygroups.wire.seal import FRAMES, Sealed
from tests.wire.samples import GROUP, HEADS, A, B, a_codec, sealed

Target = Callable[[bytes], None]
PLACE: Final = ("127.0.0.1", 4_000)
SECRET: Final = bytes(range(32))
SEPARATOR: Final = b"\xc1\xc1"  # of messages of blocks; no msgpack
CHUNK: Final = 700  # bytes of a connection that arrive at once, so that frames arrive in parts


class _Loop:
    """An event loop that only tells the time; nothing waits in it."""

    def time(self) -> float:
        return 1.0

    def add_reader(self, *_: object) -> None: ...
    def remove_reader(self, *_: object) -> None: ...
    def call_later(self, *_: object) -> Any:
        return asyncio.TimerHandle(0, lambda: None, (), self)  # type: ignore[arg-type]

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, _: object) -> None: ...


class _Silent:
    def warning(self, *_: object) -> None: ...


def _crashed(error: BaseException) -> None:
    raise error


def _nothing(*_: object) -> None: ...


class _Ends:
    """The network of a member whose datagrams and connections come from the fuzzer.  It counts the bytes it sends."""

    def __init__(self, secret: bytes | None) -> None:
        def handshake() -> Handshake:
            return Handshake(B, None if secret is None else Secret(ring_of_bytes(secret)), lambda: 1.0)

        seal = None if secret is None else Sealed(Secret(ring_of_bytes(secret)), FRAMES, GROUP)
        codec = Codec(GROUP, HEADS, seal=seal)

        def receive(frame: memoryview) -> bool:
            with suppress(PeerError):
                codec.decode(frame, B)
            return True

        udp = self.udp = UdpNetwork(B, GROUP, Config(), handshake=handshake())
        door = self.door = Door(B, GROUP, Config(), RateLimitedLog(_Silent()))
        for part in (udp, door):
            part.loop = _Loop()  # type: ignore[assignment]
            part.receive, part.happened, part.count, part.crashed = receive, _nothing, _nothing, _crashed
            part.asked = lambda question, answer: answer(DiscoveryReply(1, question.nonce, question.presence))
        door.handshake, door.greeted = handshake(), _nothing
        door.unopened = lambda body, _: door.handshake.refusal(body)
        udp.warn = RateLimitedLog(_Silent())
        udp.contact = "127.0.0.1:5000"
        udp.datagrams.give = self._give  # type: ignore[method-assign]
        self.sent = 0

    def _give(self, datagrams: list[bytes], place: object) -> None:
        self.sent += sum(map(len, datagrams))


class _Socket:
    """A connection whose peer sent these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.sent = data, 0

    def recv_into(self, area: memoryview) -> int:
        part, self.data = self.data[: min(CHUNK, len(area))], self.data[min(CHUNK, len(area)) :]
        area[: len(part)] = part
        return len(part)

    def send(self, data: bytes) -> int:
        self.sent += len(data)
        return len(data)

    def close(self) -> None: ...


PLAIN: Final = _Ends(None)
SEALED: Final = _Ends(SECRET)
CODEC: Final = a_codec()
SECRET_CODEC: Final = Codec(GROUP, HEADS, seal=Sealed(Secret(ring_of_bytes(SECRET)), FRAMES, GROUP))
SEGMENT: Final = Path(tempfile.gettempdir()) / f"pygroups-fuzz-{os.getpid()}"


def packet(data: bytes) -> None:
    """A packet behind a right checksum."""
    with suppress(PeerError):
        for run in CODEC.decode(sealed(data or b"\0", A), B):
            payloads_of(run)


def frame(data: bytes) -> None:
    """A frame as it comes, with and without a secret."""
    for codec in (CODEC, SECRET_CODEC):
        with suppress(PeerError):
            codec.decode(data, B)


def datagram(data: bytes) -> None:
    """A datagram of a process without the secret, and of any process where there is none.  The answer is not longer."""
    for ends in (PLAIN, SEALED):
        before = ends.sent
        ends.udp.arrived(memoryview(data), PLACE)
        assert ends.sent - before <= len(data), "an answer that is longer than its question"


def connection(data: bytes) -> None:
    """The bytes of a connection."""
    for ends in (PLAIN, SEALED):
        end = Incoming(ends.door, _Socket(data), "127.0.0.1:1")  # type: ignore[arg-type]
        ends.door.strangers[end] = None
        while not end.closed:
            end._readable()
        assert not ends.door.incoming and not ends.door.strangers and not ends.door.kept_bytes


def command(data: bytes) -> None:
    """Messages of blocks: one after another in a new replica, or a state."""
    replica = Replica()
    for payload in data.split(SEPARATOR):
        found = blocks.opened(payload)
        if isinstance(found, blocks.Command):
            replica.apply(A, found)
    replica.on_view((B,))
    Replica().load(replica.saved())
    with suppress(Error):
        replica.load(data)


def text(data: bytes) -> None:
    """The texts that a process reads from files, sockets and options."""
    _entry(data, str(A), lambda data, _: data)
    times_in(data)
    command_in(data)
    shown = data.decode(errors="replace")
    for parse in (parse_address, parse_contact, lambda text: parse_ring(text, "a file")):
        with suppress(UsageError):
            parse(shown)  # type: ignore[operator]


def journal(data: bytes) -> None:
    """A segment of a journal, as the audit reads it."""
    SEGMENT.write_bytes(data)
    for _ in read_segments([Segment(str(SEGMENT), "g", "A", "1" * 16, len(data), None)]):
        pass


DECODERS: Final[dict[str, Target]] = {
    target.__name__: target for target in (packet, frame, datagram, connection, command, text, journal)
}


def close() -> None:
    """Remove the file of the journal."""
    SEGMENT.unlink(missing_ok=True)


def stranger() -> Address:
    """A process that no view has."""
    return Address("Z", "f" * 16)
