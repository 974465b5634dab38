"""The seal: what it opens, what it refuses and never keeps, and that no nonce meets a key twice."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.errors import SealError, UsageError
from pygroups.core.limits import FRAME_MAX, REPLAY_WINDOW
from pygroups.core.run import Run
from pygroups.layers.verify_suspect import AreYouAlive
from pygroups.wire import seal
from pygroups.wire.codec import Codec
from pygroups.wire.frame import HEADER, OPEN_PART, VERSION, Checksum
from pygroups.wire.ring import KEY_MIN, Ring, Secret, line_of, parse_ring, ring_of_bytes
from pygroups.wire.seal import (
    FRAMES,
    HANDSHAKE,
    READ_ONE_OF,
    SENDERS_MAX,
    UNKNOWN_MAX,
    ReplayWindow,
    Sealed,
    derived,
    extracted,
)
from tests.wire.samples import GROUP, HEADS, A, B, incarnations

KEY = bytes(range(32))
WRONG = "wrong seal"


def a_seal(key: bytes = KEY, purpose: str = FRAMES, group: str = GROUP) -> Sealed:
    return Sealed(Secret(Ring({7: key})), purpose, group)


def reason(one: Sealed, frame: bytes, about: bytes = b"") -> str:
    with pytest.raises(SealError) as caught:
        one.open(memoryview(frame), about)
    return caught.value.reason


@settings(deadline=None)
@given(incarnations, st.integers(0, (1 << 64) - 1), st.binary(max_size=500), st.binary(max_size=20))
def test_what_is_sealed_is_opened(incarnation: str, counter: int, packet: bytes, about: bytes) -> None:
    frame = a_seal().sealed([packet[:7], packet[7:]], Address("A", incarnation), counter, about)
    assert a_seal().open(memoryview(frame), about) == (incarnation, counter, packet)
    assert len(frame) == HEADER.size + len(packet), "the same as with a checksum: datagrams are as full"


def test_the_open_part_stands_as_it_is_described_and_the_rest_shows_nothing() -> None:
    packet = b"the packet, with the name of a member: replica-7"
    frame = a_seal().sealed([packet], Address("A", "0123456789abcdef"), 7)
    assert frame[:4] == b"P" + bytes([VERSION, 1, 7])
    assert frame[4:12] == bytes.fromhex("0123456789abcdef")
    assert frame[12:20] == struct.pack(">Q", 7)
    assert not any(packet[at : at + 4] in frame for at in range(len(packet) - 4))
    assert GROUP.encode() not in frame


def test_keys_are_derived_by_hkdf_of_rfc_5869() -> None:
    reference = HKDF(SHA256(), 32, b"pygroups seal 1", b"info").derive(KEY)
    assert derived(extracted(KEY), b"info") == reference


@pytest.mark.parametrize(
    "other",
    [
        a_seal(bytes(32)),
        a_seal(group="orders2"),
        a_seal(group=""),
        a_seal(purpose=HANDSHAKE),
        Sealed(Secret(Ring({7: bytes(32), 8: KEY})), FRAMES, GROUP),
    ],
)
def test_another_secret_group_or_purpose_opens_nothing(other: Sealed) -> None:
    assert reason(a_seal(), other.sealed([b"packet"], A, 0)) == WRONG


def test_an_answer_to_something_else_does_not_open() -> None:
    frame = a_seal().sealed([b"packet"], A, 0, b"question 1")
    assert reason(a_seal(), frame, b"question 2") == WRONG
    assert reason(a_seal(), frame) == WRONG
    assert a_seal().open(memoryview(frame), b"question 1")[2] == b"packet"


def test_every_flipped_bit_and_every_cut_is_noticed_and_leaves_nothing_behind() -> None:
    frame, receiver = bytearray(a_seal().sealed([b"packet"], A, 3)), a_seal()
    for bit in range(8 * len(frame)):
        frame[bit // 8] ^= 1 << bit % 8
        assert reason(receiver, bytes(frame))
        frame[bit // 8] ^= 1 << bit % 8
    for size in range(len(frame)):
        assert reason(receiver, bytes(frame[:size]))
    assert receiver.senders == {}
    assert receiver.open(memoryview(frame))[2] == b"packet"


def test_frames_without_a_seal_are_refused_and_with_one_by_a_process_without_a_secret() -> None:
    assert reason(a_seal(), Checksum(GROUP).sealed([b"packet"], A, 0)) == "no seal, and this process has a secret"
    with pytest.raises(SealError, match="unknown seal"):
        Checksum(GROUP).open(memoryview(a_seal().sealed([b"packet"], A, 0)))


def test_a_frame_that_is_too_long_is_not_deciphered() -> None:
    assert reason(a_seal(), b"P" + bytes([VERSION, 1, 7]) + bytes(FRAME_MAX)) == "the frame is too short or too long"


def test_forged_frames_of_many_senders_leave_nothing_behind() -> None:
    receiver = a_seal()
    for number in range(3_000):
        header = OPEN_PART.pack(b"P", VERSION, 1, 7, struct.pack(">Q", number), number << 40)
        assert reason(receiver, header + bytes(50)) in (WRONG, "one of many frames of unknown senders")
    assert receiver.senders == {}


def test_of_a_flood_of_forged_frames_few_are_read_and_known_senders_are_heard_at_once() -> None:
    sender, receiver, tried = a_seal(), a_seal(), list[bytes]()
    receiver.open(memoryview(sender.sealed([b"x"], A, 0)))
    real = receiver.make
    receiver.make = lambda key: tried.append(key) or real(key)  # type: ignore[assignment, func-returns-value]
    for number in range(10 * UNKNOWN_MAX):
        header = OPEN_PART.pack(b"P", VERSION, 1, 7, struct.pack(">Q", 100 + number), 0)
        assert reason(receiver, header + bytes(50)) in (WRONG, "one of many frames of unknown senders")
    assert len(tried) <= UNKNOWN_MAX + 9 * UNKNOWN_MAX // READ_ONE_OF + 1
    assert receiver.open(memoryview(sender.sealed([b"x"], A, 1)))[1] == 1
    for number in range(READ_ONE_OF):
        try:
            assert receiver.open(memoryview(sender.sealed([b"x"], B, number)))[0] == B.incarnation
            break
        except SealError:
            continue
    else:
        raise AssertionError("a process that nobody knows yet is not heard")
    assert receiver.open(memoryview(sender.sealed([b"x"], B, 99)))[1] == 99


def test_the_window_of_a_sender_does_not_move_for_a_forged_counter() -> None:
    sender, receiver = a_seal(), a_seal()
    receiver.open(memoryview(sender.sealed([b"1"], A, 1)))
    forged = bytearray(sender.sealed([b"2"], A, 2))
    forged[12:20] = struct.pack(">Q", 1 << 50)
    assert reason(receiver, bytes(forged)) == WRONG
    assert receiver.open(memoryview(sender.sealed([b"2"], A, 2)))[1] == 2


# -- replay


def test_nothing_is_opened_twice() -> None:
    sender, receiver = a_seal(), a_seal()
    frames = [sender.sealed([b"%d" % number], A, number) for number in range(100)]
    for frame in [*frames[50:], *frames[:50]]:
        receiver.open(memoryview(frame))
    for frame in frames:
        assert reason(receiver, frame) == "a frame that was received before, or is too old"


@settings(deadline=None)
@given(st.lists(st.integers(0, 3 * REPLAY_WINDOW), max_size=60))
def test_the_window_takes_each_counter_once_as_a_set_would(counters: list[int]) -> None:
    window, taken = ReplayWindow(), set[int]()
    for counter in counters:
        fresh = counter not in taken and counter > max(taken, default=-1) - REPLAY_WINDOW
        assert window.take(counter) == fresh
        if fresh:
            taken.add(counter)
        assert window.used.bit_length() <= REPLAY_WINDOW


@pytest.mark.parametrize("behind", [REPLAY_WINDOW - 1, REPLAY_WINDOW])
def test_the_edge_of_the_window(behind: int) -> None:
    window = ReplayWindow()
    assert window.take(REPLAY_WINDOW + 5)
    assert window.take(REPLAY_WINDOW + 5 - behind) == (behind < REPLAY_WINDOW)


def test_the_senders_that_are_remembered_are_few_and_the_one_heard_last_stays() -> None:
    sender, receiver = a_seal(), a_seal()
    for number in range(SENDERS_MAX + 10):
        life = Address("A", f"{number + 10:016x}")
        receiver.open(memoryview(sender.sealed([b"x"], life, 0)))
        receiver.open(memoryview(sender.sealed([b"x"], A, number)))
    assert len(receiver.senders) == SENDERS_MAX
    assert reason(receiver, sender.sealed([b"x"], A, 5)) == "a frame that was received before, or is too old"


# -- keys and nonces


class Watched:
    """Notes each pair of a key and a nonce."""

    pairs: set[tuple[bytes, bytes]] = set()  # noqa: RUF012 (of one test)

    def __init__(self, key: bytes) -> None:
        self.key = key

    def encrypt(self, nonce: bytes, data: bytes, aad: bytes) -> bytes:
        assert (self.key, nonce) not in self.pairs
        self.pairs.add((self.key, nonce))
        return data + bytes(16)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["frame", "hello", "entry", "new life", "new epoch", "old epoch", "far"]),
            st.integers(1, 20),
        ),
        max_size=40,
    )
)
def test_no_nonce_is_used_twice_with_a_key(steps: list[tuple[str, int]]) -> None:
    """Over lives, epochs there and back, purposes, and counters beyond 2**32."""
    Watched.pairs = set()
    rings = [Ring({1: KEY, 2: bytes(32)}), Ring({2: bytes(32), 1: KEY})]
    secret, lives = Secret(rings[0]), iter(range(1_000))
    seals: dict[str, Any] = {}
    counter = 0

    def begin() -> Address:
        for purpose in ("frame", "hello", "entry"):
            seals[purpose] = Sealed(secret, purpose, GROUP)
            seals[purpose].make = Watched
        return Address("A", f"{next(lives):016x}")

    me = begin()
    for step, times in steps:
        if step == "new life":
            me, counter = begin(), 0
        elif step.endswith("epoch"):
            secret.replace(rings[step == "new epoch"])
        elif step == "far":
            counter += (1 << 32) - 3
        else:
            for _ in range(times):
                seals[step].sealed([b"x"], me, counter)
                counter += 1


def test_a_key_seals_no_more_than_two_to_the_power_of_32_frames() -> None:
    sender, made = a_seal(), list[bytes]()
    real = sender.make
    sender.make = lambda key: made.append(key) or real(key)  # type: ignore[assignment, func-returns-value]
    for counter in (0, 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1):
        sender.sealed([b"x"], A, counter)
    assert len(set(made)) == len(made) == 2


# -- the ring


def test_a_receiver_opens_what_any_key_of_its_ring_sealed_and_sends_with_the_first() -> None:
    old, both, new = Ring({1: KEY}), Ring({2: bytes(32), 1: KEY}), Ring({2: bytes(32)})
    receiver = Sealed(Secret(both), FRAMES, GROUP)
    for number, ring in enumerate([old, both, new]):
        frame = Sealed(Secret(ring), FRAMES, GROUP).sealed([b"x"], A, number)
        assert frame[3] == ring.sending
        assert receiver.open(memoryview(frame))[1] == number


def test_keys_change_while_frames_flow_and_the_window_stays() -> None:
    secret = Secret(Ring({1: KEY}))
    sender, receiver = Sealed(secret, FRAMES, GROUP), Sealed(secret, FRAMES, GROUP)
    first = sender.sealed([b"x"], A, 0)
    receiver.open(memoryview(first))
    assert secret.replace(Ring({2: bytes(32), 1: KEY}))
    second = sender.sealed([b"x"], A, 1)
    assert second[3] == 2
    receiver.open(memoryview(second))
    assert reason(receiver, first) == "a frame that was received before, or is too old"
    secret.replace(Ring({2: bytes(32)}))
    third = sender.sealed([b"x"], A, 2)
    assert reason(receiver, first) == "sealed with a key that this process does not have"
    assert receiver.open(memoryview(third))[1] == 2


def test_an_unknown_epoch_makes_the_process_look_for_new_keys() -> None:
    looked: list[int] = []
    receiver = a_seal()
    receiver.secret.look = lambda: looked.append(1)
    assert reason(receiver, Sealed(Secret(Ring({9: KEY})), FRAMES, GROUP).sealed([b"x"], A, 0)).startswith(
        "sealed with"
    )
    assert looked == [1]


def texts() -> Iterator[tuple[str, str]]:
    good = line_of(1, KEY)
    yield "", "has no key"
    yield "# nothing\n\n", "has no key"
    yield "correct horse battery staple", "line 1 of the secret is not a key"
    yield f"{good}x {good}", "line 2 of the secret is not a key"
    yield good + good, "line 2 of the secret repeats the epoch 1"
    yield line_of(256, KEY), "is not a key: write a number from 0 to 255"
    yield line_of(1, KEY[: KEY_MIN - 1]), "has 15 bytes, and needs 16 to 1,024"
    yield "1 ====", "is not base64"
    yield "1 " + "A" * 21 + "!", "is not base64"
    yield "".join(line_of(epoch, KEY) for epoch in range(17)), "has more than 16 keys"


@pytest.mark.parametrize(("text", "sentence"), list(texts()))
def test_what_is_no_ring_is_one_sentence_without_a_part_of_it(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ring(text, "the secret")
    assert sentence in str(caught.value)
    assert not any(len(word) > 8 and word in str(caught.value) for word in text.split())


def test_a_ring_is_read_as_it_was_written() -> None:
    ring = parse_ring(f"# comment\n{line_of(3, KEY)}\n  {line_of(200, bytes(16))}", "x")
    assert (ring.sending, ring.key(3), ring.key(200), ring.key(1)) == (3, KEY, bytes(16), None)
    assert ring == Ring({3: KEY, 200: bytes(16)}) != Ring({200: bytes(16), 3: KEY})
    assert ring_of_bytes(KEY).sending == 0
    for size in (15, 1_025):
        with pytest.raises(UsageError, match=r"needs 16 to 1,024 random bytes"):
            ring_of_bytes(bytes(size))


def test_no_text_of_these_objects_shows_a_key() -> None:
    secret = Secret(Ring({1: b"hunter2hunter2hunter2"}))
    shown = f"{secret} {secret!r} {secret.ring} {secret.ring!r} {Sealed(secret, FRAMES, GROUP)!r}"
    assert "hunter" not in shown


def test_the_package_that_encrypts_is_asked_for_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'pygroups\[secret\]'$"):
        seal.check_available()


# -- with the codec


def test_runs_travel_sealed() -> None:
    one, other = (Codec(GROUP, HEADS, None, a_seal()) for _ in range(2))
    (frame,) = one.encode(A, B, [Run(A, B, (AreYouAlive(1),))])
    (run,) = other.decode(frame, B)
    assert (run.src, run.dest, run.heads) == (A, B, (AreYouAlive(1),))
    with pytest.raises(SealError):
        other.decode(frame, B)
    with pytest.raises(SealError):
        Codec(GROUP, HEADS).decode(frame, B)
