"""Every length and count of the wire at its limit, one below and one above; and what decoding costs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import (
    BODY_MAX,
    DETAIL_MAX,
    FINGERPRINT_MAX,
    HEADS_MAX,
    MARKS_MAX,
    MEMBERS_MAX,
    RUN_MESSAGES_MAX,
    RUNS_PER_FRAME_MAX,
    TEXT_MAX,
    XMIT_RANGES_MAX,
)
from pygroups.core.run import Run, pack
from pygroups.core.view import Ballot
from tests.wire.samples import A, B, a_codec, packed, packet_of, sealed, wire_run

ALIVE = [11, 1]
BALLOT = [3, ["A", "0"]]
TEXT = "x" * TEXT_MAX
NUMBER_MAX = 1 << 62
FLOOR = 64 << 10  # what an exception and its traceback may take, whatever the frame


def members(count: int) -> list[list[str]]:
    return [[f"m{n}", "0"] for n in range(count)]


def view(count: int) -> Any:
    return [BALLOT, members(count), ["h:1"] * count]


def side(**more: Any) -> Any:
    fields = {"old": BALLOT, "view": view(1), "out": [], "cut": [], "holders": []}
    return list((fields | more).values())


def proposal(**more: Any) -> Any:
    fields = {"ballot": BALLOT, "id": BALLOT, "history": "", "sides": [side()], "joiners": {}, "electors": ()}
    fields |= {"standings": {}}
    return list((fields | more).values())


def vector(count: int) -> list[int]:
    return [0] * count


def encoded_map(count: int, value: bytes = b"\0") -> msgspec.Raw:
    """Addresses and a value for each; encoded by hand, because a list is no key in Python."""
    entry = msgspec.msgpack.encode
    pairs = b"".join(entry([f"m{n}", "0"]) + value for n in range(count))
    return msgspec.Raw(b"\xdf" + count.to_bytes(4, "big") + pairs)


LENGTHS: dict[str, tuple[int, Callable[[int], object]]] = {
    "runs in a frame": (RUNS_PER_FRAME_MAX, lambda n: packed(*[wire_run(ALIVE)] * n)),
    "heads on a run": (HEADS_MAX, lambda n: packed(wire_run(*[ALIVE] * n))),
    "messages in a run": (
        RUN_MESSAGES_MAX,
        lambda n: packed(wire_run(ALIVE, origin=["A", "0"], first=1, count=n, body=b"x")),
    ),
    "bytes in a body": (
        BODY_MAX,
        lambda n: packed(wire_run(ALIVE, origin=["A", "0"], first=1, count=1, body=bytes(n))),
    ),
    "letters in the sender's name": (64, lambda n: packed(wire_run(ALIVE), sender="A" * n)),
    "letters in an origin's name": (
        64,
        lambda n: packed(wire_run(ALIVE, origin=["A" * n, "0"], first=1, count=1, body=b"x")),
    ),
    "digits in an incarnation": (
        32,
        lambda n: packed(wire_run(ALIVE, origin=["A", "0" * n], first=1, count=1, body=b"x")),
    ),
    "a number": (
        NUMBER_MAX,
        lambda n: packed(wire_run(ALIVE, origin=["A", "0"], first=n, count=1, body=b"x")),
    ),
    "a piece's index": (NUMBER_MAX, lambda n: packed([["A", "0"], 1, n, 0, [ALIVE], b"x"])),
    "a ballot's number": (NUMBER_MAX, lambda n: packed(wire_run([1, [n, ["A", "0"]]]))),
    "members of a view": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(sides=[side(view=view(n))])]))),
    "sides of a proposal": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(sides=[side()] * n)]))),
    "members who go": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(sides=[side(out=vector(n))])]))),
    "joiners": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(joiners=encoded_map(n, b"\xa1h"))]))),
    "streams of a cut": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(sides=[side(cut=vector(n))])]))),
    "holders of a cut": (MEMBERS_MAX, lambda n: packed(wire_run([38, proposal(sides=[side(holders=vector(n))])]))),
    "a rank": (MEMBERS_MAX - 1, lambda n: packed(wire_run([38, proposal(sides=[side(out=[n])])]))),
    "streams of an answer": (MEMBERS_MAX, lambda n: packed(wire_run([36, BALLOT, vector(n), False]))),
    "suspects of a member": (MEMBERS_MAX, lambda n: packed(wire_run([46, BALLOT, encoded_map(n, b"\x01")]))),
    "letters in a contact": (TEXT_MAX, lambda n: packed(wire_run([30, ["A", "0"], "h" * n, ""]))),
    "letters in a view's contact": (
        TEXT_MAX,
        lambda n: packed(wire_run([38, proposal(sides=[side(view=[BALLOT, members(1), ["h" * n]])])])),
    ),
    "letters in a fingerprint": (FINGERPRINT_MAX, lambda n: packed(wire_run([30, ["A", "0"], "h", "f" * n]))),
    "letters in a refusal": (DETAIL_MAX, lambda n: packed(wire_run([31, "refused", "d" * n]))),
    "letters in a fingerprint of another group": (FINGERPRINT_MAX, lambda n: packed(wire_run([51, "f" * n]))),
    "streams of a vote": (
        MEMBERS_MAX,
        lambda n: packed(wire_run([70, BALLOT, 1, vector(n), vector(n), vector(n), vector(n)])),
    ),
    "streams of stability": (
        MEMBERS_MAX,
        lambda n: packed(wire_run([71, BALLOT, 1, vector(n), vector(n), vector(n), vector(n)])),
    ),
    "ranges of a request": (XMIT_RANGES_MAX, lambda n: packed(wire_run([61, BALLOT, ["A", "0"], [[0, 1]] * n]))),
}


def decodes(packet: Any) -> bool:
    try:
        a_codec().decode(sealed(packet), B)
    except PeerError as error:
        assert error.reason in ("malformed packet", "the frame is too short or too long")
        return False
    return True


@pytest.mark.parametrize("what", LENGTHS)
def test_a_limit_is_taken_and_one_above_is_not(what: str) -> None:
    limit, packet = LENGTHS[what]
    assert decodes(packet(limit - 1))
    assert decodes(packet(limit))
    assert not decodes(packet(limit + 1))


@pytest.mark.parametrize("number", [-1, -(1 << 31), -(1 << 63), 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("what", ["a number", "a piece's index", "a ballot's number", "messages in a run"])
def test_numbers_beyond_all_bounds_are_refused(what: str, number: int) -> None:
    packets: dict[str, Callable[[int], bytes]] = {
        "a number": lambda n: packed(wire_run(ALIVE, origin=["A", "0"], first=n, count=1, body=b"x")),
        "a piece's index": lambda n: packed([["A", "0"], 1, n, 0, [ALIVE], b"x"]),
        "a ballot's number": lambda n: packed(wire_run([1, [n, ["A", "0"]]])),
        "messages in a run": lambda n: packed(wire_run(ALIVE, origin=["A", "0"], first=1, count=n, body=b"x")),
    }
    assert not decodes(packets[what](number))


def test_digests_are_bounded_above_what_a_config_allows() -> None:
    assert decodes(packed(wire_run([40, proposal(), encoded_map(MARKS_MAX)])))
    assert not decodes(packed(wire_run([40, proposal(), encoded_map(2 * MARKS_MAX)])))


# -- what decoding costs


def peak(frame: bytes) -> int:
    """How much more was allocated than before, at the worst moment; the frame itself is there already."""
    codec = a_codec()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        try:
            runs: object = codec.decode(frame, B)
        except PeerError:
            runs = None
        most = tracemalloc.get_traced_memory()[1] - before
        del runs
    finally:
        tracemalloc.stop()
    return most


LONG = [length.to_bytes(4, "big") for length in ((1 << 16) - 1, 1 << 31, (1 << 32) - 1)]
BOMBS = {
    "a packet of": b"\xdd%b",
    "a name of": b"\x93\xdb%b",
    "so many runs": b"\x93\xa1A\xa0\xdd%b",
    "a run of": b"\x93\xa1A\xa0\x91\xdd%b",
    "so many heads": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\xdd%b",
    "a head of": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\xdd%b",
    "a vote for": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\x97\x46\x92\x01\x92\xa1A\xa10\x01\xdd%b",
    "a view of": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\x92\x26\x97\x92\x01\x92\xa1A\xa10\x92\x01\x92\xa1A\xa10"
    b"\x93\x92\x01\x92\xa1A\xa10\xdd%b",
    "marks of": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\x95\x24\x92\x01\x92\xa1A\xa10\x80\xdf%b",
    "a body of": b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0\x91\x92\x0b\x01\xc6%b",
    "something unknown of": b"\x94\xa1A\xa0\x90\xc9%b",
    "unknown things": b"\x94\xa1A\xa0\x90\xdd%b",
    "an unknown map of": b"\x94\xa1A\xa0\x90\xdf%b",
}


@pytest.mark.parametrize("length", LONG)
@pytest.mark.parametrize("what", BOMBS)
def test_nothing_is_allocated_because_a_length_says_so(what: str, length: bytes) -> None:
    for padding in (0, 1_000, 100_000):
        frame = sealed(BOMBS[what].replace(b"%b", length) + b"\x01" * padding)
        assert peak(frame) < 4 * len(frame) + FLOOR


def test_nesting_costs_no_more_than_other_bytes() -> None:
    for bomb in (b"\x91" * 1_000_000, b"\x94\xa1A\xa0\x90" + b"\x91" * 1_000_000, b"\x81" * 1_000_000):
        frame = sealed(bomb)
        assert peak(frame) < 4 * len(frame) + FLOOR


def full_frame() -> bytes:
    """A frame of data as it is under load."""
    body = pack([bytes(100)] * 600)
    batch = [Run(A, None, (), A, 1 + 600 * n, 0, 600, body) for n in range(2)]
    (frame,) = a_codec().encode(A, None, batch)
    return frame


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_frame_costs_no_more_than_its_size(damage: list[tuple[float, int]]) -> None:
    packet = bytearray(packet_of(full_frame()))
    for place, byte in damage:
        packet[int(place * len(packet))] = byte
    packet[int(damage[0][0] * 60)] = damage[0][1]  # and one where the lengths stand
    frame = sealed(bytes(packet))
    assert peak(frame) < 4 * len(frame) + FLOOR


def dense(head: bytes, per_run: int, runs: int) -> bytes:
    run = b"\x96\xc0\0\0\0\xdc" + per_run.to_bytes(2, "big") + head * per_run + b"\xc4\0"
    return sealed(b"\x93\xa1A\xa0\xdd" + runs.to_bytes(4, "big") + run * runs)


@pytest.mark.parametrize(
    "head", [b"\x92\x0b\x01", b"\x94\x15\x01\0\0", b"\x92\x19\x01"], ids=["IAmAlive", "Ack", "Closed"]
)
def test_what_the_densest_frames_may_cost(head: bytes) -> None:
    """Small heads are larger as objects than as bytes; their number is what is bounded."""
    for per_run in (1, HEADS_MAX):
        frame = dense(head, per_run, RUNS_PER_FRAME_MAX)
        most = peak(frame)
        assert most < 30 * len(frame)
        assert most < 16 << 20


def test_a_ballot_has_a_successor_that_the_wire_takes() -> None:
    """Whoever hears of the highest number leads with one above it, which others must be able to hear."""
    highest = Ballot(NUMBER_MAX - 1, Address("A", "0"))
    assert decodes(packed(wire_run([1, [highest.number + 1, ["A", "0"]]])))
