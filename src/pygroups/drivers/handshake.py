"""The messages outside of frames (hello.py, the entries of a folder), as they travel: plain, or sealed with the secret.

A message that a process cannot open gets a refusal: a constant that is shorter than any message, and the same whatever
was wrong.  The refusal is not sealed, because the asking process could not open it.  So a liar can send it too, and it
is only a hint (refusals.py): a joiner takes it for the answer of its group if most places that it was told refuse, and
no process of the group answers for REFUSED_PATIENCE.  Note: docs/drivers.md, docs/decisions/0169.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE, PeerError, SealError
from pygroups.core.events import Event
from pygroups.core.tables import Tables, under
from pygroups.wire.frame import MAGIC, OPEN_PART, VERSION
from pygroups.wire.ring import Secret
from pygroups.wire.seal import ENTRY, HANDSHAKE, Sealed

from .contacts import Contact
from .refusals import Refusals

REFUSALS_PER_SECOND: Final = 64  # that one process sends
REFUSED_PATIENCE: Final = 5.0  # seconds for which a joiner that hears only refusals looks on
SENT_MAX: Final = 4_096  # messages of this process that may still be refused
_ECHO: Final = slice(OPEN_PART.size, OPEN_PART.size + 8)  # ciphertext: only a process that saw a message knows it
_FIRST_MAX: Final = 1 << 62


class Refusal(msgspec.Struct, array_like=True, tag="sealed"):
    """The answer to a message that could not be opened.  `echo`: its first encrypted bytes, if it was sealed."""

    version: int  # of the wire
    echo: Annotated[bytes, Meta(max_length=8)]


class OtherSecret(Event):
    """Driver to channel: this process cannot join, because only processes with another secret, or with none, answer."""

    detail: str


class Unopened(PeerError):
    """A message that this process cannot open.  Its sender has another secret, or none; or it is no message."""


class Handshake:
    """The seal of one process for its messages outside of frames, and the hints that its secret is not the group's.

    A refusal repeats bytes of the message that nobody can guess, and counts only from the place that the message was
    sent to.  `now`: the time in seconds.
    """

    tables: ClassVar[Tables] = {
        **under("seal", Sealed.tables),
        **under("entries", Sealed.tables),
        **under("refusals", Refusals.tables),
        "sent": SENT_MAX,
    }

    def __init__(self, me: Address, secret: Secret | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.me = me
        self.now = now
        self.seal = None if secret is None else Sealed(secret, HANDSHAKE)
        self.entries = None if secret is None else Sealed(secret, ENTRY)
        self.next = secrets.randbelow(_FIRST_MAX)
        self.sent: dict[bytes, str] = {}  # the place of each message, by its echo; "" if it went to no single one
        self.second, self.refused_now = 0, 0  # the refusals that were sent in this second
        self.refusals = Refusals(now, strict=secret is None)

    # -- messages

    def closed(self, message: bytes, about: bytes = b"", place: tuple[str, int] | None = None) -> bytes:
        """The bytes of `message` on the wire.  `about`: further bytes that the receiver must know.  `place`: the only
        one that may refuse the message."""
        if self.seal is None:
            return message
        self.next += 1
        body = self.seal.sealed([message], self.me, self.next - 1, about)
        self.sent[body[_ECHO]] = "" if place is None else str(Contact(*place))
        if len(self.sent) > SENT_MAX:
            del self.sent[next(iter(self.sent))]
        return body

    def opened(self, body: bytes | memoryview, about: bytes = b"") -> bytes | memoryview:
        """The message in `body`.  Raises Unopened if this process has another secret, or if only one side has one."""
        if self.seal is None:
            if _looks_sealed(body):
                raise Unopened("a sealed message, and this process has no secret")
            return body
        try:
            return self.seal.open(memoryview(body), about)[2]
        except SealError as error:
            raise Unopened(error.reason) from None

    def about(self, body: bytes | memoryview) -> bytes:
        """The bytes that name the message in `body`, for its answer: no other message has them."""
        return b"" if self.seal is None else bytes(body[: OPEN_PART.size])

    def answered(self, body: bytes | memoryview, place: tuple[str, int], about: bytes = b"") -> bytes | memoryview:
        """The message in the answer of the process at `place`.  Raises PeerError for a refusal too, after noting it."""
        if self.is_refusal(body, str(Contact(*place))):
            self.refusals.refused(str(Contact(*place)))
            raise PeerError("an answer without a seal: another secret, or none")
        return self.opened(body, about)

    # -- refusals

    def refusal(self, body: bytes | memoryview) -> bytes:
        """The answer to a message that could not be opened: b"" if this process has sent enough of them now, or if the
        answer would be longer than the message."""
        second = int(self.now())
        if second != self.second:
            self.second, self.refused_now = second, 0
        self.refused_now += 1
        echo = bytes(body[_ECHO]) if _looks_sealed(body) else b""
        answer = msgspec.msgpack.encode(Refusal(VERSION, echo))
        return answer if self.refused_now <= REFUSALS_PER_SECOND and len(answer) <= len(body) else b""

    def is_refusal(self, body: bytes | memoryview, place: str) -> bool:
        """Whether `body`, which came from `place`, is the refusal of a message of this process."""
        try:
            refusal = msgspec.msgpack.decode(body, type=Refusal)
        except UNDECODABLE:
            return False
        if self.seal is None:
            return not refusal.echo
        return self.sent.get(refusal.echo) in ("", place)

    # -- hints for a joiner

    def heard(self, process: Address) -> None:
        """A process of this group, with the same secret, was heard."""
        if process != self.me:
            self.refusals.answered()

    def verdict(self) -> OtherSecret | None:
        """The event that ends the join, if refusals have objected for REFUSED_PATIENCE."""
        if not self.refusals.objects or self.now() - self.refusals.since < REFUSED_PATIENCE:
            return None
        return OtherSecret(self.sentence())

    def sentence(self) -> str:
        """The reason why this process cannot join, and the correction."""
        if self.seal is None:
            return (
                f"the group has a secret, and this process has none: {self.refusals.by} does not open its messages; "
                "give the group's secret="
            )
        return (
            f"another secret: {self.refusals.by} and this process cannot open each other's messages, and no process "
            "with this secret answers; give the group's secret=, or, if no group runs yet, give discovery= more places "
            "or start two processes at the same time"
        )

    # -- entries of a folder

    @property
    def version(self) -> int:
        """A number that grows with each change of the keys."""
        return 0 if self.entries is None else self.entries.secret.version

    def entry_closed(self, text: bytes) -> bytes:
        """The bytes of the own entry with this text.  Texts of one length give bytes of one length."""
        if self.entries is None:
            return text
        self.next += 1
        return self.entries.sealed([text], self.me, self.next - 1, str(self.me).encode())

    def entry_opened(self, data: bytes, process: Address) -> bytes | memoryview:
        """The text of the entry of `process`.  Raises Unopened as `opened` does."""
        if self.entries is None:
            return plain_entry(data, process)
        try:
            incarnation, _, text = self.entries.open(memoryview(data), str(process).encode(), once=False)
        except SealError as error:
            raise Unopened(error.reason) from None
        if incarnation != process.incarnation:
            raise Unopened("the entry of another process")
        return text


def plain_entry(data: bytes, process: Address) -> bytes:
    """The text of the entry of `process`, for a reader without a secret.  Raises Unopened if it is sealed."""
    if _looks_sealed(data):
        raise Unopened("a sealed entry, and this process has no secret")
    return data


def _looks_sealed(body: bytes | memoryview) -> bool:
    """Whether `body` begins as a frame: no message without a seal does."""
    return bytes(body[:1]) == MAGIC
