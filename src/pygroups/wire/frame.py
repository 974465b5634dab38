"""Frames: the unit of data between two processes.  A frame without a secret is a header of 36 bytes and one packet.

     0  magic       1 byte, b"P"
     1  version     1 byte
     2  seal        1 byte: 0 is a checksum, 1 authenticated encryption, with the tag at the end of a frame (seal.py)
     3  epoch       1 byte: the number of the key; 0 for a checksum
     4  sender      8 bytes: the sender's incarnation, not encrypted
    12  counter     8 bytes: the number of the frame at this sender, from 0; the nonce of a seal
    20  tag         16 bytes: over all bytes before and after it

The name of the group goes into the tag and is not sent.  The tag of a frame of another group is therefore wrong.
Frames of both kinds are 36 bytes longer than their packets.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Protocol

from xxhash import xxh3_64_intdigest, xxh3_128

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import SealError
from pygroups.core.limits import FRAME_MAX

VERSION: Final = 2  # of the heads, too: tests/wire/test_version.py
SEAL_CHECKSUM: Final = 0
SEAL_AEAD: Final = 1
HEADER: Final = struct.Struct(">cBBB8sQ16s")
OPEN_PART: Final = struct.Struct(">cBBB8sQ")  # the header without its tag
MAGIC: Final = b"P"


class Seal(Protocol):
    """Makes frames of packets, and opens them."""

    def sealed(self, packet: Sequence[bytes], sender: Address, counter: int) -> bytes:
        """The frame of a packet, which is given in pieces."""

    def open(self, frame: memoryview) -> tuple[str, int, memoryview | bytes]:
        """The sender's incarnation, the number of the frame there, and the packet.  Raises SealError for any other
        bytes, with the reason."""


def incarnation_bytes(address: Address) -> bytes:
    """The incarnation of `address` as a header has it."""
    return int(address.incarnation, 16).to_bytes(INCARNATION_DIGITS // 2, "big")


class Checksum:
    """Seals frames of one group against accidents: flipped bits, truncation, frames of another group.

    The seal does not protect against an attacker; that needs a secret (seal.py).
    """

    def __init__(self, group: str) -> None:
        self.seed = xxh3_64_intdigest(group.encode())

    def sealed(self, packet: Sequence[bytes], sender: Address, counter: int) -> bytes:
        """The frame of a packet, which is given in pieces."""
        header = OPEN_PART.pack(MAGIC, VERSION, SEAL_CHECKSUM, 0, incarnation_bytes(sender), counter)
        return b"".join([header, self._tag([header, *packet]), *packet])

    def open(self, frame: memoryview) -> tuple[str, int, memoryview]:
        """The sender's incarnation, the number of the frame there, and the packet.  Raises SealError for an invalid
        frame, with the reason."""
        if not HEADER.size < len(frame) <= FRAME_MAX:
            raise SealError("the frame is too short or too long")
        magic, version, seal, epoch, incarnation, counter, tag = HEADER.unpack_from(frame)
        if magic != MAGIC:
            raise SealError("the data is no frame")
        if version != VERSION:
            raise SealError("another wire version")
        if seal != SEAL_CHECKSUM or epoch != 0:
            raise SealError("unknown seal")
        packet = frame[HEADER.size :]
        if self._tag((frame[: OPEN_PART.size], packet)) != tag:
            raise SealError("checksum")
        return incarnation.hex(), counter, packet

    def _tag(self, pieces: Sequence[bytes | memoryview]) -> bytes:
        tag = xxh3_128(seed=self.seed)
        for piece in pieces:
            tag.update(piece)
        return tag.digest()
