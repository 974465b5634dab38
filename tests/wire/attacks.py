"""Frames as an attacker without the secret makes them from frames that it has seen: each is wrong in one way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from pygroups.core.address import Address
from pygroups.core.run import Run
from pygroups.layers.verify_suspect import AreYouAlive
from pygroups.wire.codec import Codec
from pygroups.wire.frame import OPEN_PART, Checksum
from pygroups.wire.ring import Ring, Secret
from pygroups.wire.seal import FRAMES, HANDSHAKE, Sealed
from tests.wire.samples import GROUP, HEADS, A, packet_of

KEY: Final = bytes(range(32))
OTHER: Final = bytes(32)
EPOCH: Final = 7
SEEN_MAX: Final = 256  # frames that the attacker makes others from


def secret(key: bytes = KEY, epoch: int = EPOCH) -> Secret:
    return Secret(Ring({epoch: key}))


class Attacks:
    """Frames of members, and what an attacker makes of them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sender = Codec(GROUP, HEADS, seal=Sealed(secret(), FRAMES, GROUP))
        self.seen: list[bytes] = []
        self.wrong = {
            "another key": Sealed(secret(OTHER), FRAMES, GROUP),
            "another epoch": Sealed(secret(KEY, EPOCH + 1), FRAMES, GROUP),
            "another group": Sealed(secret(), FRAMES, GROUP + "2"),
            "another purpose": Sealed(secret(), HANDSHAKE, GROUP),
            "no seal": Checksum(GROUP),
        }
        self.ways: dict[str, Callable[[bytes], bytes]] = {
            "seen before": lambda frame: frame,
            "another bit": self._another_bit,
            "another byte": self._another_byte,
            "cut off": lambda frame: frame[: self.rng.randrange(len(frame))],
            "longer": lambda frame: frame + self.rng.randbytes(self.rng.randrange(1, 40)),
            "two joined": lambda frame: frame[: (at := self.rng.randrange(20, len(frame)))] + self._other(frame)[at:],
            "another counter": lambda frame: self._opening(frame, counter=self.rng.getrandbits(64)),
            "another sender": lambda frame: self._opening(frame, sender=self.rng.randbytes(8)),
            "another epoch named": lambda frame: self._opening(frame, epoch=self.rng.randrange(256)),
            **dict.fromkeys(self.wrong, lambda frame: frame),
        }

    def honest(self) -> bytes:
        """The next frame of a member, which the attacker sees too."""
        body = (A, self.rng.randrange(1, 99), 0, 1, self.rng.randbytes(self.rng.randrange(1, 200)))
        (frame,) = self.sender.encode(A, None, [Run(A, None, (AreYouAlive(self.rng.getrandbits(30)),), *body)])
        self.seen = [*self.seen[1 - SEEN_MAX :], frame]
        return frame

    def forged(self, way: str) -> bytes:
        """A frame that is wrong in this way; none that a member sent stands for itself, except one seen before."""
        frame = self.rng.choice(self.seen)
        if way in self.wrong:
            counter = self.rng.choice((self.sender.next_number, self.rng.getrandbits(40)))
            packet = packet_of(Checksum(GROUP).sealed([frame[20:-16]], A, 0))
            return self.wrong[way].sealed([packet], A, counter)
        made = self.ways[way](frame)
        return made if made != frame or way == "seen before" else self._another_bit(frame)

    def _other(self, frame: bytes) -> bytes:
        return self.rng.choice([one for one in self.seen if one != frame])

    def _another_bit(self, frame: bytes) -> bytes:
        at = self.rng.randrange(8 * len(frame))
        return frame[: at // 8] + bytes([frame[at // 8] ^ 1 << at % 8]) + frame[at // 8 + 1 :]

    def _another_byte(self, frame: bytes) -> bytes:
        at = self.rng.randrange(len(frame))
        return frame[:at] + self.rng.randbytes(1) + frame[at + 1 :]

    def _opening(
        self, frame: bytes, *, epoch: int | None = None, sender: bytes | None = None, counter: int | None = None
    ) -> bytes:
        """The frame behind another open part."""
        magic, version, seal, own_epoch, own_sender, own_counter = OPEN_PART.unpack_from(frame)
        opening = OPEN_PART.pack(
            magic,
            version,
            seal,
            own_epoch if epoch is None else epoch,
            own_sender if sender is None else sender,
            own_counter if counter is None else counter,
        )
        return opening + frame[OPEN_PART.size :]


def life(number: int) -> Address:
    return Address("A", f"{number:016x}")
