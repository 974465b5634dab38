"""Frames in parts: what is split is joined in any order, and what is kept has bounds."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.limits import SECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import ViewId
from pygroups.drivers.transports import PARTS, Transport
from pygroups.drivers.udp.datagrams import (
    DATAGRAM_LEAST,
    PART,
    PARTS_MAX,
    SPLIT,
    UNFINISHED_BYTES,
    UNFINISHED_MAX,
    UNFINISHED_TIME,
    FrameId,
    Joiner,
    Unfinished,
    is_frame,
    sender_of,
    split,
)
from pygroups.drivers.udp.sockets import SEGMENTS_BYTES, SEGMENTS_MAX, together
from pygroups.layers.nakack import Data as Nakack
from pygroups.layers.sequencer import Data as Ordered
from pygroups.layers.sequencer import Forward
from pygroups.layers.unicast2.heads import Data as Unicast
from pygroups.wire.codec import Codec
from pygroups.wire.frame import HEADER, VERSION, Checksum
from tests.drivers.tiny_stack import A, B

SEAL = Checksum("g")
SIZE = DATAGRAM_LEAST


class Joined:
    """A joiner and what it counted."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.counts = Counter[str]()
        self.joiner = Joiner(limit, lambda why: self.counts.update([why]))

    def add(self, part: bytes, now: int = 0) -> bytes | None:
        return self.joiner.add(memoryview(part), now)


def frame(size: int, counter: int = 0, sender: object = A) -> bytes:
    return SEAL.sealed([os.urandom(size)], A if sender is A else B, counter)


@given(st.integers(1, 20_000), st.integers(DATAGRAM_LEAST, 9_000), st.randoms(use_true_random=False))
def test_what_is_split_is_joined_in_any_order(size: int, datagram: int, chance: random.Random) -> None:
    whole, joined = frame(size), Joined()
    parts = split(whole, datagram)
    assert all(len(part) <= datagram for part in parts)
    if len(parts) == 1:
        assert parts == [whole]
        assert is_frame(memoryview(whole))
        return
    assert not any(is_frame(memoryview(part)) for part in parts)
    parts += chance.sample(parts, len(parts) // 2)  # the network repeats some
    chance.shuffle(parts)
    done = [one for one in map(joined.add, parts) if one is not None]
    assert done[:1] == [whole]
    assert set(joined.counts) <= {"repeated parts"}


def test_parts_of_many_frames_may_be_mixed() -> None:
    joined = Joined()
    frames = [frame(2_000, counter, sender) for counter in range(4) for sender in (A, B)]
    parts = [part for several in zip(*[split(whole, SIZE) for whole in frames], strict=True) for part in several]
    assert [one for one in map(joined.add, parts) if one is not None] == frames
    assert joined.joiner.kept_bytes == 0
    assert not joined.joiner.frames


@pytest.mark.parametrize("over", [0, 1])
def test_a_frame_of_too_many_parts_is_none(over: int) -> None:
    room = SIZE - PART.size
    whole = frame(PARTS_MAX * room - HEADER.size + over)
    assert len(split(whole, SIZE)) == (0 if over else PARTS_MAX)


@pytest.mark.parametrize(
    ("version", "index", "count"),
    [
        (VERSION + 1, 0, 2),
        (VERSION, 2, 2),
        (VERSION, 0, 1),
        (VERSION, 0, 0),
        (VERSION, 5, PARTS_MAX + 1),
        (VERSION, 65_535, 65_535),
    ],
)
def test_parts_that_cannot_be_are_dropped(version: int, index: int, count: int) -> None:
    joined = Joined()
    assert joined.add(PART.pack(SPLIT, version, index, count, bytes(8), 0) + b"x") is None
    assert joined.add(b"S" * PART.size) is None
    assert joined.counts == {"malformed parts": 2}
    assert not joined.joiner.frames


def test_a_part_that_contradicts_the_others_changes_nothing() -> None:
    joined = Joined()
    whole = frame(2_000)
    parts = split(whole, SIZE)
    joined.add(parts[0])
    _, _, index, count, sender, counter = PART.unpack_from(parts[1])
    joined.add(PART.pack(SPLIT, VERSION, index, count + 1, sender, counter) + b"x")
    joined.add(PART.pack(SPLIT, VERSION, 0, count, sender, counter) + b"another text")
    assert [one for one in map(joined.add, parts[1:]) if one is not None] == [whole]
    assert joined.counts == {"contradicting parts": 1, "repeated parts": 1}


def test_one_sender_has_so_many_unfinished_frames() -> None:
    """The oldest goes; another sender's stays."""
    joined = Joined()
    other = split(frame(2_000, 0, B), SIZE)
    joined.add(other[0])
    frames = [split(frame(2_000, counter), SIZE) for counter in range(UNFINISHED_MAX + 1)]
    for parts in frames:
        joined.add(parts[0])
    assert len(joined.joiner.frames) == UNFINISHED_MAX + 1
    assert joined.counts == {"frames with a lost part": 1}
    assert [one for one in map(joined.add, other[1:]) if one is not None]
    assert [one for parts in frames[1:] for one in map(joined.add, parts[1:]) if one is not None]


def test_one_sender_has_so_many_bytes() -> None:
    joined = Joined()
    part = bytes(60_000)
    count = UNFINISHED_BYTES // len(part) + 1
    for number in range(count):
        joined.add(PART.pack(SPLIT, VERSION, number // 2, PARTS_MAX, bytes(8), number % 2) + part)
        assert joined.joiner.kept_bytes <= UNFINISHED_BYTES
    assert joined.counts == {"frames with a lost part": 1}


def test_all_together_have_so_many_bytes() -> None:
    joined = Joined(limit=10_000)
    for number in range(20):
        joined.add(PART.pack(SPLIT, VERSION, 0, 2, number.to_bytes(8, "big"), 0) + bytes(1_000))
        assert joined.joiner.kept_bytes <= 10_000
    assert joined.counts == {"frames with a lost part": 14}  # each takes 1,640 bytes, its cost included


def test_what_does_not_come_whole_is_forgotten() -> None:
    joined = Joined()
    old, young = split(frame(2_000, 0), SIZE), split(frame(2_000, 1), SIZE)
    joined.add(old[0], now=0)
    joined.add(young[0], now=UNFINISHED_TIME)
    assert joined.counts == {"frames with a lost part": 1}
    assert len(joined.joiner.frames) == 1
    assert UNFINISHED_TIME == 30 * SECOND


def test_a_frame_names_its_sender() -> None:
    assert sender_of(frame(10)) == bytes.fromhex(A.incarnation)
    assert sender_of(frame(10, 0, B)) == bytes.fromhex(B.incarnation)


@pytest.mark.parametrize("profile", ["total", "fifo"])
@pytest.mark.parametrize("parts", [1, PARTS])
def test_a_full_run_fits_its_datagrams(profile: str, parts: int) -> None:
    """With names of ten letters; a multicast, a Forward, and a message to one member.  Where the network loses many
    runs, a run has one datagram."""
    config = Transport("udp").limits(Config(), parts)
    size = config.run_bytes if parts > 1 else config.run_bytes_lossy
    me, other = (Address(name * 10, f"{number:016x}") for number, name in enumerate("AB", 1))
    view, late = ViewId(1 << 20, me), 1 << 30
    heads: list[tuple[object, ...]] = [(Nakack(view, me, late),), (Unicast(late, 1, late, late, True),)]
    if profile == "total":
        heads = [(Ordered(), *heads[0]), (Forward(view), *heads[1])]
    body = pack([bytes(size)])
    codec = Codec("orders", [Nakack, Unicast, Ordered, Forward], Transport("udp").frame_bytes(config))
    for dest in (None, other):
        runs = [Run(me, dest, stack, me, late, 0, 1, body) for stack in heads]
        for each in codec.encode(me, dest, runs):
            assert len(split(each, config.datagram)) == parts


class Counted(dict[FrameId, Unfinished]):
    """Counts the frames that a walk over it passes."""

    passed = 0

    def __iter__(self) -> Iterator[FrameId]:
        for name in super().__iter__():
            self.passed += 1
            yield name

    def values(self) -> Any:
        return _one_by_one(self)


def _one_by_one(frames: Counted) -> Iterator[Unfinished]:
    for name in frames:
        yield frames[name]


def test_a_part_costs_the_same_however_many_frames_are_unfinished() -> None:
    """A flood of parts of many senders would keep a member busy otherwise."""
    joined = Joined()
    frames = joined.joiner.frames = Counted()
    for number in range(2_000):
        part = PART.pack(ord("S"), VERSION, 0, 2, number.to_bytes(8, "big"), 1) + b"x"
        joined.joiner.add(memoryview(part), 0)
    assert len(frames) == len(joined.joiner.senders) == 2_000
    assert frames.passed <= 4 * 2_000


def test_what_the_kernel_takes_together() -> None:
    """Datagrams of one size, and then one that is smaller; each frame by itself."""
    one, other = [bytes(1_400)] * 7 + [bytes(900)], [bytes(1_400)] * 2 + [bytes(10)]
    assert together(one + other, 0) == 8
    assert together(one + other, 8) == 3
    assert together([bytes(10), bytes(1_400)], 0) == 1
    assert together([bytes(1_400)] * 100, 0) == SEGMENTS_BYTES // 1_400
    assert together([bytes(600)] * 100, 36) == SEGMENTS_MAX
    assert together([bytes(65_000)] * 3, 1) == 1
