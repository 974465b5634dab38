"""The first inputs of each target: some that are right, and those that found something once (the files of corpus/)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pygroups.blocks.replica import Replica
from pygroups.blocks.wire import note
from pygroups.core.driver_events import Presence
from pygroups.drivers.discovery.entries import Entry, text_of
from pygroups.drivers.hello import DiscoveryQuestion, Hello, packed, padded, with_length
from pygroups.drivers.udp.datagrams import split
from pygroups.journal.schema import FIELDS
from pygroups.journal.writer import JournalEncoder
from pygroups.wire.frame import VERSION
from tests.wire.fuzz import real_frames
from tests.wire.samples import GROUP, A, B, packet_of, runs_of

CORPUS: Final = Path(__file__).parent / "corpus"
"""A file for each target, with an input in hexadecimal digits on each line."""


def kept(target: str) -> list[bytes]:
    """The inputs of the file."""
    file = CORPUS / f"{target}.txt"
    return [bytes.fromhex(line) for line in file.read_text().split()] if file.exists() else []


def keep(target: str, inputs: Sequence[bytes]) -> None:
    """Replace the inputs of the file."""
    CORPUS.mkdir(exist_ok=True)
    lines = sorted({data.hex() for data in inputs if data}, key=lambda line: (len(line), line))
    (CORPUS / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with."""
    return [*_right(target), *kept(target)]


def _right(target: str) -> list[bytes]:
    frames = [frame for _, frame in real_frames(1)][:60]
    hello = packed(padded(Hello(VERSION, GROUP, A, "127.0.0.1:1", B)))
    question = packed(padded(DiscoveryQuestion(VERSION, GROUP, bytes(8), Presence(A, "h:1", False, True, B))))
    match target:
        case "packet":
            return [packet_of(frame) for frame in frames]
        case "receive":
            return [bytes([number % 5, 0, number]) + runs_of(frame) for number, frame in enumerate(frames)]
        case "frame":
            return frames[:10]
        case "datagram":
            return [b"Q" + bytes(8) + hello, b"F" + question, *frames[:5], *split(frames[0] * 9, 576)]
        case "connection":
            return [with_length(hello) + with_length(frames[0]), with_length(question)]
        case "command":
            return [note(("lock", "l"), [1]), Replica().saved()]
        case "text":
            key = b"1 " + b"A" * 43 + b"="
            return [str(A).encode(), b"[::1]:70", key, text_of(Entry(True, "h:1")), b'{"h:1":1.5}', _vouch()]
        case "journal":
            return [_segment()]
    raise AssertionError(target)


def _vouch() -> bytes:
    return b'{"call":"vouch","member":["A","1111111111111111"]}'


def _segment() -> bytes:
    """A segment with a record of each kind, with one field of each."""
    encoder = JournalEncoder(GROUP, *A, "total", host="h", boot_id="b", version="1", services=())
    records = [(kind, (1, "A"), {names[0]: "A"} if names else {}) for kind, names in FIELDS.items()]
    return encoder.beginning() + encoder.frame(records, 1, 1)
