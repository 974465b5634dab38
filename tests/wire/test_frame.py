"""Frames: what holds up, and why the rest does not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import FRAME_MAX
from pygroups.wire.frame import HEADER, VERSION, Checksum
from tests.wire.samples import GROUP, A, incarnations, sealed


def opened(frame: bytes, group: str = GROUP) -> tuple[str, bytes]:
    incarnation, _, packet = Checksum(group).open(memoryview(frame))
    return incarnation, bytes(packet)


def reason(frame: bytes, group: str = GROUP) -> str:
    with pytest.raises(PeerError) as caught:
        opened(frame, group)
    return caught.value.reason


@settings(deadline=None)
@given(incarnations, st.integers(0, (1 << 64) - 1), st.binary(min_size=1, max_size=500))
def test_what_is_sealed_is_opened(incarnation: str, counter: int, packet: bytes) -> None:
    pieces = [packet[:7], packet[7:]]
    assert opened(Checksum(GROUP).sealed(pieces, Address("A", incarnation), counter)) == (incarnation, packet)


def test_the_header_stands_as_it_is_described() -> None:
    frame = Checksum(GROUP).sealed([b"pac", b"ket"], Address("A", "0123456789abcdef"), 7)
    assert HEADER.size == 36
    assert frame[:4] == b"P" + bytes([VERSION, 0, 0])
    assert frame[4:12] == bytes.fromhex("0123456789abcdef")
    assert frame[12:20] == struct.pack(">Q", 7)
    assert frame[36:] == b"packet"


def test_frames_without_room_for_a_packet_or_with_too_much_of_it() -> None:
    for size in (0, 1, HEADER.size - 1, HEADER.size):
        assert reason(b"P" * size) == "the frame is too short or too long"
    assert opened(sealed(b"x"))[1] == b"x"
    assert len(opened(sealed(bytes(FRAME_MAX - HEADER.size)))[1]) == FRAME_MAX - HEADER.size
    assert reason(sealed(bytes(FRAME_MAX - HEADER.size + 1))) == "the frame is too short or too long"


def test_the_reason_says_what_is_wrong_with_the_header() -> None:
    good = sealed(b"packet")
    for at, byte, why in [
        (0, 0x00, "the data is no frame"),
        (1, VERSION + 1, "another wire version"),
        (2, 1, "unknown seal"),  # a seal that is not built here opens nothing
        (3, 1, "unknown seal"),
        (4, good[4] ^ 1, "checksum"),  # somebody else's frame
        (19, good[19] ^ 1, "checksum"),
        (20, good[20] ^ 1, "checksum"),
        (36, good[36] ^ 1, "checksum"),
    ]:
        assert reason(good[:at] + bytes([byte]) + good[at + 1 :]) == why


def test_a_frame_of_another_group_does_not_hold_up() -> None:
    assert reason(sealed(b"packet", A, "orders2")) == "checksum"
    assert reason(sealed(b"packet"), "orders2") == "checksum"


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_no_frame_and_nothing_worse(noise: bytes) -> None:
    assert reason(noise) in (
        "the frame is too short or too long",
        "the data is no frame",
        "another wire version",
        "unknown seal",
        "checksum",
    )
    assert reason(b"P" + bytes([VERSION, 0, 0]) + noise) in ("the frame is too short or too long", "checksum")
