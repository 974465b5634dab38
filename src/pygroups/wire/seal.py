"""Authenticated encryption of frames: AES-256-GCM, with keys that are derived from the secret of the group.

    0  open part   20 bytes, not encrypted: as in frame.py, with seal 1, and the epoch of the key
   20  packet      encrypted
  end  tag         16 bytes: over the open part, the packet, and the name of the group, which is not sent

The key of a frame is HKDF-SHA256 (RFC 5869) of the group's secret, with the purpose, the name of the group, the
sender's incarnation, the epoch, and the upper half of the counter.  The nonce is the counter.  So no nonce is used
twice with one key, and no key seals more than 2**32 frames (NIST SP 800-38D allows as many).  A receiver accepts each
counter of a sender once, within a window of REPLAY_WINDOW; the window moves only after a tag was right.
Note: docs/drivers.md, docs/decisions/0168.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.errors import SealError, UsageError
from pygroups.core.limits import FRAME_MAX, MEMBERS_MAX, REPLAY_WINDOW
from pygroups.core.tables import Tables

from .frame import HEADER, MAGIC, OPEN_PART, SEAL_AEAD, VERSION, incarnation_bytes
from .ring import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FRAMES: Final = "frames"  # the purposes of keys: a message of one purpose is none of another
HANDSHAKE: Final = "handshake"
ENTRY: Final = "entry"

SENDERS_MAX: Final = 2 * MEMBERS_MAX  # whose replay windows are kept; all of them have the secret
KEYS_OF_A_SENDER: Final = 4  # derived keys that are kept: two epochs, two halves of the counter
UNKNOWN_MAX: Final = 1_024  # forged frames of unknown senders in a row after which most are dropped unread
READ_ONE_OF: Final = 16  # these, then
_SALT: Final = b"pygroups seal 1"
_PER_KEY: Final = struct.Struct(">8sBI")  # incarnation, epoch, upper half of the counter
_NONCE: Final = struct.Struct(">4xQ")
_WINDOW_BITS: Final = (1 << REPLAY_WINDOW) - 1


def check_available() -> None:
    """Raise UsageError if the package that encrypts is not installed."""
    if importlib.util.find_spec("cryptography") is None:
        raise UsageError(
            "secret= needs the package cryptography, which is not installed: pip install 'pygroups[secret]'"
        )


def extracted(secret: bytes) -> bytes:
    """The first step of HKDF: a key of uniform length from the secret."""
    return hmac.digest(_SALT, secret, hashlib.sha256)


def derived(extract: bytes, info: bytes) -> bytes:
    """The second step of HKDF: the 32 bytes of the key with this `info`."""
    return hmac.digest(extract, info + b"\x01", hashlib.sha256)


class ReplayWindow:
    """The counters that one sender has used: the highest, and a bit for each of the REPLAY_WINDOW counters up to it."""

    __slots__ = ("highest", "used")

    def __init__(self) -> None:
        self.highest = -1
        self.used = 0  # bit 0 stands for the highest counter

    def take(self, counter: int) -> bool:
        """Note this counter.  Returns False if it was used before, or is below the window."""
        ahead = counter - self.highest
        if ahead > 0:
            self.used = (self.used << ahead | 1) & _WINDOW_BITS if ahead < REPLAY_WINDOW else 1
            self.highest = counter
            return True
        if -ahead >= REPLAY_WINDOW or self.used >> -ahead & 1:
            return False
        self.used |= 1 << -ahead
        return True


class _Sender:
    """The state of one sender whose frames were authentic."""

    __slots__ = ("heard", "keys", "window")

    def __init__(self) -> None:
        self.window = ReplayWindow()
        self.keys: dict[tuple[int, int], AESGCM] = {}  # by epoch and upper half of the counter
        self.heard = 0  # number of the last authentic frame here: the order in which senders are forgotten


class Sealed:
    """Encrypts frames for one purpose, and opens those of other processes with the same secret, purpose and group.

    An attacker without the secret can make this object do work, and cannot make it keep anything.  A flood of forged
    frames of unknown senders costs little: after UNKNOWN_MAX of them most are dropped unread, until authentic frames
    arrive.  A process that nobody knows yet is then heard at its next tries.
    """

    tables: ClassVar[Tables] = {
        "context": "fixed",
        "extracts": "fixed",
        "extracts[]": "fixed",
        "sending": "fixed",
        "sending[]": "fixed",
        "senders": SENDERS_MAX,
        "senders[].keys": KEYS_OF_A_SENDER,
    }

    def __init__(self, secret: Secret, purpose: str, group: str = "") -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.secret = secret
        self.make, self.wrong = AESGCM, InvalidTag
        self.context = b"\0".join([purpose.encode(), group.encode(), b""])
        self.version = secret.version  # of the ring that the kept keys belong to
        self.extracts: dict[int, bytes] = {}  # by epoch
        self.senders: dict[bytes, _Sender] = {}  # by incarnation
        self.opened = 0
        self.unread = 0  # frames of unknown senders that were dropped unread in a row
        self.patience = UNKNOWN_MAX
        self.sending: tuple[bytes, int, AESGCM] | None = None  # for this incarnation and upper half of the counter
        self.epoch = secret.ring.sending

    def sealed(self, packet: Sequence[bytes], sender: Address, counter: int, about: bytes = b"") -> bytes:
        """The frame of a packet, which is given in pieces.  `about`: further bytes that the receiver must know."""
        if self.version != self.secret.version:
            self._change()
        incarnation, high = incarnation_bytes(sender), counter >> 32
        if self.sending is None or self.sending[:2] != (incarnation, high):
            key = self._key(incarnation, self.secret.ring.sending, high)
            assert key is not None
            self.epoch = self.secret.ring.sending
            self.sending = incarnation, high, key
        header = OPEN_PART.pack(MAGIC, VERSION, SEAL_AEAD, self.epoch, incarnation, counter)
        data = packet[0] if len(packet) == 1 else b"".join(packet)
        return header + self.sending[2].encrypt(_NONCE.pack(counter), data, header + self.context + about)

    def open(self, frame: memoryview, about: bytes = b"", *, once: bool = True) -> tuple[str, int, bytes]:
        """The sender's incarnation, the number of the frame there, and the packet.  Raises SealError for any other
        bytes, and for a frame that was opened before, unless not `once`."""
        if not HEADER.size <= len(frame) <= FRAME_MAX:
            raise SealError("the frame is too short or too long")
        magic, version, seal, epoch, incarnation, counter = OPEN_PART.unpack_from(frame)
        if magic != MAGIC:
            raise SealError("the data is no frame")
        if version != VERSION:
            raise SealError("another wire version")
        if seal != SEAL_AEAD:
            raise SealError("no seal, and this process has a secret")
        if self.version != self.secret.version:
            self._change()
        sender, at = self.senders.get(incarnation), (epoch, counter >> 32)
        if sender is None and not self._spend_patience():
            raise SealError("one of many frames of unknown senders")
        key = None if sender is None else sender.keys.get(at)
        if key is None and (key := self._key(incarnation, *at)) is None:
            self.secret.look()
            raise SealError("sealed with a key that this process does not have")
        header = bytes(frame[: OPEN_PART.size])
        try:
            packet = key.decrypt(_NONCE.pack(counter), frame[OPEN_PART.size :], header + self.context + about)
        except self.wrong:
            self.patience -= sender is None and self.patience > 0
            raise SealError("wrong seal") from None
        self.unread, self.patience = 0, min(self.patience + 1, UNKNOWN_MAX)
        if sender is None:
            sender = self._new_sender(incarnation)
        if at not in sender.keys:
            self._keep(sender, at, key)
        self.opened = sender.heard = self.opened + 1
        if once and not sender.window.take(counter):
            raise SealError("a frame that was received before, or is too old")
        return incarnation.hex(), counter, packet

    def _spend_patience(self) -> bool:
        """Count a frame of an unknown sender.  Returns whether to read it: False for most during a flood."""
        if not self.patience:
            self.unread = (self.unread + 1) % READ_ONE_OF
        return not self.unread

    def _key(self, incarnation: bytes, epoch: int, high: int) -> AESGCM | None:
        extract = self.extracts.get(epoch)
        if extract is None:
            secret = self.secret.ring.key(epoch)
            if secret is None:
                return None
            extract = self.extracts[epoch] = extracted(secret)
        return self.make(derived(extract, self.context + _PER_KEY.pack(incarnation, epoch, high)))

    def _change(self) -> None:
        """The ring has changed: derive all keys again.  The replay windows stay."""
        self.version = self.secret.version
        self.extracts, self.sending = {}, None
        for sender in self.senders.values():
            sender.keys = {}

    def _new_sender(self, incarnation: bytes) -> _Sender:
        if len(self.senders) >= SENDERS_MAX:
            del self.senders[min(self.senders, key=lambda one: self.senders[one].heard)]
        sender = self.senders[incarnation] = _Sender()
        return sender

    def _keep(self, sender: _Sender, at: tuple[int, int], key: AESGCM) -> None:
        if len(sender.keys) >= KEYS_OF_A_SENDER:
            del sender.keys[next(iter(sender.keys))]
        sender.keys[at] = key
