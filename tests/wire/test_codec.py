"""The codec: runs come out as they went in, and of everything else a PeerError."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import BODY_MAX, FRAME_FILL, FRAME_MAX, RUNS_PER_FRAME_MAX
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.gms.decisions.proposal import Proposal, Side, difference
from pygroups.layers.gms.heads import Done, Install, Stuck
from pygroups.layers.nakack import Data
from pygroups.layers.verify_suspect import AreYouAlive, IAmAlive
from pygroups.wire.codec import Codec
from pygroups.wire.frame import HEADER
from tests.wire.samples import GROUP, HEADS, A, B, C, a_codec, packed, packet_of, runs, same, sealed, seen, wire_run

VIEW = ViewId(3, A)
ALIVE = [11, 1]  # IAmAlive(1) on the wire


def data_run(first: int = 1, count: int = 2, dest: Address | None = None) -> Run:
    body = pack([b"payload"] * count)
    return Run(A, dest, (Data(VIEW, A, first),), A, first, 0, count, body)


def reason(frame: bytes, codec: Codec | None = None, me: Address = B) -> str:
    with pytest.raises(PeerError) as caught:
        (codec or a_codec()).decode(frame, me)
    return caught.value.reason


# -- round trips


@given(st.lists(runs(), min_size=1, max_size=3))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_runs_come_out_as_they_went_in(sent: list[Run]) -> None:
    codec, other_end = a_codec(), a_codec()
    for dest in (None, B):
        batch = [run.readdressed(A, dest) for run in sent]
        frames = codec.encode(A, dest, batch)
        assert same(batch, [run for frame in frames for run in other_end.decode(memoryview(frame), B)])


@pytest.mark.parametrize("head", HEADS, ids=lambda head: f"{head.__module__.split('.')[2]}.{head.__name__}")
def test_every_head_is_an_array_with_a_tag_of_its_own(head: type) -> None:
    config = head.__struct_config__  # type: ignore[attr-defined]
    assert config.array_like
    assert isinstance(config.tag, int)
    assert [other for other in HEADS if other.__struct_config__.tag == config.tag] == [head]  # type: ignore[attr-defined]


def test_two_heads_with_one_tag_are_refused_when_the_codec_is_made() -> None:
    class Other(msgspec.Struct, array_like=True, tag=11):
        pass

    with pytest.raises(TypeError):
        Codec("orders", [IAmAlive, Other])


def test_a_multicast_has_the_same_frame_for_everybody_and_a_unicast_names_the_life_it_is_for() -> None:
    codec = a_codec()
    (frame,) = codec.encode(A, None, [data_run()])
    assert seen(codec.decode(frame, B)[0]) == seen(codec.decode(frame, C)[0])
    (frame,) = codec.encode(A, B, [data_run()])
    (run,) = codec.decode(frame, B)
    assert run.dest == B
    assert reason(frame, me=C) == "for another incarnation"
    assert reason(frame, me=Address("B", "f" * 16)) == "for another incarnation"


def test_frames_come_back_to_nobody() -> None:
    (frame,) = a_codec().encode(A, None, [data_run()])
    assert reason(frame, me=A) == "frame of this process"
    assert a_codec().decode(frame, Address("A", "f" * 16))[0].src == A, "another life of that name is somebody else"


def test_frames_of_another_group_are_refused() -> None:
    (frame,) = a_codec("orders").encode(A, None, [data_run()])
    assert reason(frame, a_codec("invoices")) == "checksum"


# -- how runs become frames


def test_frames_are_filled_and_no_run_is_split_or_moved() -> None:
    batch = [Run(A, None, (IAmAlive(1),), A, n, 0, 1, pack([bytes(60_000)])) for n in range(1, 12)]
    frames = a_codec().encode(A, None, batch)
    assert len(frames) == 4
    assert all(len(frame) < FRAME_FILL + BODY_MAX for frame in frames)
    assert same(batch, [run for frame in frames for run in a_codec().decode(frame, B)])


def test_a_frame_takes_so_many_runs_and_no_more() -> None:
    batch = [Run(A, None, (AreYouAlive(1),))] * (RUNS_PER_FRAME_MAX + 1)
    frames = a_codec().encode(A, None, batch)
    assert [len(a_codec().decode(frame, B)) for frame in frames] == [RUNS_PER_FRAME_MAX, 1]


def test_heads_too_large_for_one_frame_go_in_several() -> None:
    """FRAME_FILL counts bodies; a few digests of a long history need no body to fill a frame."""
    marks = {Address(f"{n:060}", "0" * 16): 1 << 40 for n in range(15_000)}
    of_a = AgreedView(VIEW, (A,), ("a",))
    install = Install(difference(Proposal(VIEW, of_a, (Side(of_a, (A,), {}, {}),), ()), None), marks)
    batch = [Run(A, None, (install,), A, n, 0, 1, pack([b"x"])) for n in range(1, 7)]
    codec = a_codec()
    frames = codec.encode(A, None, batch)
    assert len(frames) > 1 and all(len(frame) <= FRAME_MAX for frame in frames)
    assert same(batch, [run for frame in frames for run in a_codec().decode(frame, B)])
    assert len(a_codec().decode(codec.encode(A, None, [data_run()])[0], B)) == 1, "and it goes on"


def test_frames_for_datagrams_are_no_larger_than_they_may_be() -> None:
    """The longest names; runs that fit one by one are gathered as long as they fit together."""
    me = Address("N" * 64, A.incarnation)
    batch = [Run(me, B, (IAmAlive(1),), me, n, 0, 1, pack([bytes(n)])) for n in range(1, 800)]
    codec = Codec(GROUP, HEADS, 1_400)
    frames = codec.encode(me, B, batch)
    assert max(map(len, frames)) <= 1_400
    assert len(frames) < len(batch)
    assert all(len(one) + len(other) > 1_400 - HEADER.size for one, other in pairwise(frames))
    assert same(batch, [run for frame in frames for run in a_codec().decode(frame, B)])


def test_a_run_that_fits_no_datagram_has_a_frame_of_its_own() -> None:
    batch = [Run(A, None, (IAmAlive(1),), A, n, 0, 1, pack([bytes(2_000 if n == 2 else 10)])) for n in (1, 2, 3)]
    frames = Codec(GROUP, HEADS, 1_400).encode(A, None, batch)
    assert [len(a_codec().decode(frame, B)) for frame in frames] == [1, 1, 1]


def test_no_runs_need_no_frame() -> None:
    assert a_codec().encode(A, None, []) == []


# -- what does not hold up


def a_frame() -> bytes:
    sent = [data_run(), data_run(3), Run(A, None, (Done(VIEW),)), Run(A, None, (Stuck(VIEW, VIEW),))]
    (frame,) = a_codec().encode(A, None, sent)
    return frame


def test_a_frame_that_was_cut_anywhere_does_not_hold_up() -> None:
    frame, codec = a_frame(), a_codec()
    for size in range(len(frame)):
        assert reason(frame[:size], codec) in ("the frame is too short or too long", "checksum")


def test_a_packet_that_was_cut_anywhere_is_malformed_though_its_checksum_is_right() -> None:
    packet, codec = packet_of(a_frame()), a_codec()
    for size in range(len(packet)):
        assert reason(sealed(packet[:size]), codec) in ("the frame is too short or too long", "malformed packet")
    assert reason(sealed(packet + b"\0"), codec) == "malformed packet"


def test_every_flipped_bit_is_noticed() -> None:
    frame, codec = bytearray(a_frame()), a_codec()
    for bit in range(8 * len(frame)):
        frame[bit // 8] ^= 1 << bit % 8
        assert reason(bytes(frame), codec)
        frame[bit // 8] ^= 1 << bit % 8
    codec.decode(bytes(frame), B)


def test_behind_a_right_checksum_a_flipped_bit_gives_runs_or_a_peer_error_and_nothing_else() -> None:
    packet, codec, refused = bytearray(packet_of(a_frame())), a_codec(), 0
    for bit in range(8 * len(packet)):
        packet[bit // 8] ^= 1 << bit % 8
        try:
            codec.decode(sealed(bytes(packet)), B)
        except PeerError:
            refused += 1
        packet[bit // 8] ^= 1 << bit % 8
    assert refused > 2 * len(packet), "a quarter of them; most others hit names and payloads"


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (packed(wire_run(ALIVE, origin=["A", "0"], first=1, count=1, body=b"")), "malformed run"),
        (packed(wire_run(ALIVE, origin=["A", "0"], first=0, count=1, body=b"x")), "malformed run"),
        (packed(wire_run(ALIVE, first=1, count=1, body=b"x")), "malformed run"),
        (packed(wire_run(ALIVE, origin=["A", "0"])), "malformed run"),
        (packed(wire_run(ALIVE, first=1)), "malformed run"),
        (packed(wire_run(ALIVE, body=b"x")), "malformed run"),
        (packed(wire_run()), "empty run"),
        (packed(wire_run([255])), "malformed packet"),  # a head that no layer here has
        (packed(wire_run([])), "malformed packet"),
        (packed(wire_run(["IAmAlive"])), "malformed packet"),
        (packed(wire_run(11)), "malformed packet"),
        (packed(wire_run(ALIVE, origin=["A"])), "malformed packet"),
        (packed(wire_run(ALIVE, origin=["", "0"])), "malformed packet"),
        (packed(wire_run(ALIVE, origin=["A", ""])), "malformed packet"),
        (packed(wire_run(ALIVE, origin="A@0")), "malformed packet"),
        (packed(wire_run(ALIVE, first=True)), "malformed packet"),
        (packed(wire_run(ALIVE, first=1.0)), "malformed packet"),
        (packed(wire_run(ALIVE, body="text")), "malformed packet"),
        (packed(wire_run(ALIVE), sender=b"A"), "malformed packet"),
        (packed(wire_run(ALIVE), sender=""), "malformed packet"),
        (packed(wire_run(ALIVE), dest=None), "malformed packet"),
        (packed(None), "malformed packet"),
        (msgspec.msgpack.encode({"sender": "A"}), "malformed packet"),
        (b"\x93\xa1\xff\xa0\x90", "malformed packet"),  # a name that is no UTF-8
        (b"\xc1", "malformed packet"),  # a byte that msgpack has no meaning for
    ],
)
def test_what_is_no_run_is_refused_with_a_reason(packet: bytes, why: str) -> None:
    assert reason(sealed(packet)) == why


def test_one_bad_run_spoils_its_frame() -> None:
    good = wire_run(ALIVE)
    assert len(a_codec().decode(sealed(packed(good)), B)) == 1
    assert reason(sealed(packed(good, wire_run(), good))) == "empty run"


@pytest.mark.parametrize("nest", [lambda depth: b"\x91" * depth + b"\xc0", lambda depth: b"\x81\xc0" * depth + b"\xc0"])
def test_nesting_without_end_is_a_peer_error(nest: Callable[[int], bytes]) -> None:
    """msgspec skips over what it does not know, level by level."""
    bomb = nest(100_000)
    for packet in (bomb, b"\x94\xa1A\xa0\x90" + bomb, b"\x93\xa1A\xa0\x91\x97\xc0\0\0\0\x91\x92\x0b\x01\xc4\0" + bomb):
        assert reason(sealed(packet)) == "malformed packet"
    assert reason(sealed(b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\x92\x0b" + bomb + b"\xc4\0")) == "malformed packet"
