"""The keys of a group: a ring with one key to send and several to receive, so that keys change while the group runs.

The text of a ring has one key on each line: its *epoch*, a number from 0 to 255, and the key in base64.  The first line
has the key for sending.  Empty lines and lines that begin with # are skipped.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from pygroups.core.errors import UsageError
from pygroups.core.tables import Tables

KEY_MIN: Final = 16  # bytes of a key
KEY_MAX: Final = 1_024
KEY_NEW: Final = 32
KEYS_MAX: Final = 16  # of one ring
EPOCH_MAX: Final = 255
RING_MAX: Final = 64 << 10  # bytes of the text of a ring
HOW: Final = "`pygroups secret new FILE` makes one"


class Ring:
    """The keys of a group by epoch, at least one; the first is the key for sending.  The text of a ring object never
    shows a key."""

    __slots__ = ("_keys", "sending")

    def __init__(self, keys: Mapping[int, bytes]) -> None:
        self._keys = dict(keys)
        self.sending = next(iter(keys))  # the epoch of the key for sending

    def key(self, epoch: int) -> bytes | None:
        """The key of `epoch`, or None."""
        return self._keys.get(epoch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ring) and list(self._keys.items()) == list(other._keys.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Ring: epochs {', '.join(map(str, self._keys))}>"


class Secret:
    """The ring of a process, which can be replaced while the process runs."""

    __slots__ = ("look", "ring", "version")

    tables: ClassVar[Tables] = {"ring._keys": KEYS_MAX, "ring._keys[]": KEY_MAX}

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.version = 0  # grows with each change
        self.look: Callable[[], None] = _nothing  # called at an unknown epoch: the ring may have been changed

    def replace(self, ring: Ring) -> bool:
        """Use `ring` from now on.  Returns whether it differs."""
        if ring == self.ring:
            return False
        self.ring = ring
        self.version += 1
        return True

    def __repr__(self) -> str:
        return f"<Secret: {self.ring!r}>"


def _nothing() -> None:
    """A ring that no file has does not change."""


def ring_of_bytes(key: bytes) -> Ring:
    """The ring with this key alone, in epoch 0.  Raises UsageError for a key that is too short or too long."""
    if not KEY_MIN <= len(key) <= KEY_MAX:
        raise UsageError(f"secret= has {len(key):,} bytes, and needs {KEY_MIN} to {KEY_MAX:,} random bytes: {HOW}")
    return Ring({0: key})


def parse_ring(text: str, where: str) -> Ring:
    """The ring with this text.  Raises UsageError for other text; the message contains `where`, and no part of the
    text."""
    keys: dict[int, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        epoch, key = _parsed(words, f"line {number} of {where}")
        if epoch in keys:
            raise UsageError(f"line {number} of {where} repeats the epoch {epoch}: give each key its own number")
        keys[epoch] = key
        if len(keys) > KEYS_MAX:
            raise UsageError(f"{where} has more than {KEYS_MAX} keys: remove the oldest ones")
    if not keys:
        raise UsageError(f"{where} has no key: {HOW}")
    return Ring(keys)


def _parsed(words: list[str], where: str) -> tuple[int, bytes]:
    if len(words) != 2 or not words[0].isascii() or not words[0].isdigit() or int(words[0][:4]) > EPOCH_MAX:
        raise UsageError(f"{where} is not a key: write a number from 0 to {EPOCH_MAX} and the key in base64; {HOW}")
    try:
        key = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise UsageError(f"the key in {where} is not base64: {HOW}") from None
    if not KEY_MIN <= len(key) <= KEY_MAX:
        raise UsageError(f"the key in {where} has {len(key):,} bytes, and needs {KEY_MIN} to {KEY_MAX:,}: {HOW}")
    return int(words[0]), key


def line_of(epoch: int, key: bytes) -> str:
    """The line of a ring with this key."""
    return f"{epoch} {base64.b64encode(key).decode()}\n"
