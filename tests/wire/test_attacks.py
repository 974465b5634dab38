"""Many attacks on the seal, none accepted, and many nonces, none used twice: few here, all of them by `make long`."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pygroups.core.errors import SealError
from pygroups.core.run import Run
from pygroups.drivers.handshake import Handshake
from pygroups.layers.verify_suspect import AreYouAlive
from pygroups.wire.codec import Codec
from pygroups.wire.ring import Ring, Secret
from pygroups.wire.seal import FRAMES, Sealed
from tests.wire.attacks import EPOCH, KEY, OTHER, Attacks, life, secret
from tests.wire.samples import GROUP, HEADS, B

UNREAD = "one of many frames of unknown senders"
EVERY = 50  # attacks between two frames of a member, which arrive as ever


def accepted(attacks: Attacks, receiver: Sealed, count: int) -> tuple[Counter[str], Counter[str]]:
    """The attacks that were accepted, by way, and the reasons for which the others were dropped."""
    taken: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    ways = list(attacks.ways)
    for number in range(count):
        if number % EVERY == 0:
            receiver.open(memoryview(attacks.honest()))
            receiver.open(memoryview(attacks.honest()))
        way = ways[number % len(ways)]
        try:
            receiver.open(memoryview(attacks.forged(way)))
            taken[way] += 1
        except SealError as error:
            reasons[error.reason] += 1
    return taken, reasons


def attack(count: int) -> None:
    receiver = Sealed(secret(), FRAMES, GROUP)
    taken, reasons = accepted(Attacks(seed=1), receiver, count)
    assert not taken
    assert sum(reasons.values()) == count
    assert (
        reasons["wrong seal"] > count // 3 and reasons["a frame that was received before, or is too old"] > count // 20
    )
    assert reasons[UNREAD] < count // 10, "nearly all attacks must be read"
    assert len(receiver.senders) == 1


def test_no_attack_on_the_seal_is_accepted() -> None:
    attack(5_000)


@pytest.mark.long
def test_none_of_a_million_attacks_on_the_seal_is_accepted() -> None:
    attack(1_000_000)


def test_a_receiver_that_forgets_counters_or_checks_no_tag_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = Sealed(secret(), FRAMES, GROUP)
    with monkeypatch.context() as patch:
        patch.setattr("pygroups.wire.seal.ReplayWindow.take", lambda *_: True)
        assert set(accepted(Attacks(seed=1), receiver, 200)[0]) == {"seen before"}
        receiver = Sealed(secret(), FRAMES, GROUP)
        receiver.make = Careless  # type: ignore[assignment]
        assert set(accepted(Attacks(seed=1), receiver, 2_000)[0]) >= {"another bit", "two joined", "another counter"}


class Careless:
    """A cipher that checks nothing."""

    def __init__(self, key: bytes) -> None: ...

    def decrypt(self, nonce: bytes, data: memoryview, aad: bytes) -> bytes:
        return bytes(data)


# -- nonces


class Rising:
    """A cipher whose nonces must rise for each key: then none comes twice."""

    last: dict[bytes, bytes] = {}  # noqa: RUF012 (of one test)
    count = 0

    def __init__(self, key: bytes) -> None:
        self.key = key

    def encrypt(self, nonce: bytes, data: bytes, aad: bytes) -> bytes:
        assert self.last.get(self.key, b"") < nonce, "a nonce came twice, or they do not rise"
        self.last[self.key] = nonce
        Rising.count += 1
        return b""


RINGS = (Ring({EPOCH: KEY, EPOCH + 1: OTHER}), Ring({EPOCH + 1: OTHER, EPOCH: KEY}))
ALIVE = Run(B, None, (AreYouAlive(1),))


class Lives:
    """A process that seals all that one seals, changes its key there and back, restarts, and seals very much."""

    def __init__(self, seed: int) -> None:
        Rising.last, Rising.count = {}, 0
        self.rng = random.Random(seed)
        self.secret = Secret(RINGS[0])
        self.births = 0
        self.begin()

    def begin(self) -> None:
        self.births += 1
        self.me = life(self.births)
        self.codec = Codec(GROUP, HEADS, seal=Sealed(self.secret, FRAMES, GROUP))
        self.handshake = Handshake(self.me, self.secret)
        for seal in (self.codec.seal, self.handshake.seal, self.handshake.entries):
            assert isinstance(seal, Sealed)
            seal.make = Rising  # type: ignore[assignment]

    def step(self) -> None:
        what = self.rng.random()
        if what < 0.02:
            self.begin()
        elif what < 0.1:
            self.secret.replace(self.rng.choice(RINGS))
        elif what < 0.12:
            self.codec.next_number += (1 << 32) - 20
        for _ in range(self.rng.randrange(100)):
            self.codec.encode(self.me, None, [ALIVE])
        for _ in range(self.rng.randrange(20)):
            self.handshake.closed(b"hello")
            self.handshake.entry_closed(b"entry")


def many_nonces(count: int) -> None:
    lives = Lives(seed=1)
    while Rising.count < count:
        lives.step()
    assert lives.births > count // 20_000 and len(Rising.last) > lives.births


def test_nonces_rise_over_lives_keys_and_purposes() -> None:
    many_nonces(30_000)


@pytest.mark.long
def test_ten_million_nonces_rise() -> None:
    many_nonces(10_000_000)


def test_a_counter_that_begins_anew_under_the_same_key_is_found() -> None:
    lives = Lives(seed=1)
    lives.codec.encode(lives.me, None, [ALIVE])
    lives.codec.next_number = 0
    with pytest.raises(AssertionError, match="a nonce came twice"):
        lives.codec.encode(lives.me, None, [ALIVE])
