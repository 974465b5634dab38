"""The handshake of a connection: both members, the group and the version, before the first frame.  And the questions of
discovery, which take the place of a handshake.

A member dials a connection to send frames, so each connection has frames in one direction only.  The dialing side sends
`Hello`, and the dialed side answers `Welcome`.  Each is one msgpack array of at most HELLO_MAX bytes, behind its length
in four bytes.
"""

from __future__ import annotations

import struct
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from pygroups.core.address import INCARNATION_DIGITS, NAME, Address
from pygroups.core.driver_events import Presence
from pygroups.core.errors import PeerError
from pygroups.core.limits import TEXT_MAX
from pygroups.wire.frame import VERSION

LENGTH: Final = struct.Struct(">I")
FAREWELL: Final = LENGTH.pack(
    0
)  # in place of a frame: the sender closes this connection on purpose, and has not crashed

QUESTION_MIN: Final = 400  # bytes of a question; answers with usual names and contacts have fewer

Text = Annotated[str, Meta(max_length=TEXT_MAX)]


class Hello(msgspec.Struct, array_like=True, tag="pygroups"):
    """The first message of the dialing side."""

    version: int  # of the wire
    group: Text
    sender: Address
    contact: Text  # the address that the sender listens on
    expected: Address | None  # the member that the sender wants to reach; None: whichever process listens, in no group


class Welcome(msgspec.Struct, array_like=True, tag="welcome"):
    """The answer of the dialed side: the expected member listens here, or the reason of a refusal.

    A refusal does not name the listener.  Otherwise any process that finds the port would learn a member's address.
    A process without a group tells its address to any process that asks.
    """

    version: int
    listener: Address | None
    refusal: Text = ""


class Question(msgspec.Struct, array_like=True, tag="find"):
    """The question of discovery: which process of this group listens here?  The answer is not longer than the
    question, so nobody can use a member to send more bytes to a third host than he sends himself."""

    version: int  # of the wire
    group: Text
    nonce: Annotated[bytes, Meta(max_length=16)]
    presence: Presence
    padding: Annotated[bytes, Meta(max_length=QUESTION_MIN)] = b""


class Reply(msgspec.Struct, array_like=True, tag="found"):
    """The answer to a question: the process that listens here, and why it takes no process of that version."""

    version: int
    nonce: Annotated[bytes, Meta(max_length=16)]
    presence: Presence | None  # None: no process of the group listens here
    refusal: Text = ""


NO_GROUP: Final = "- "  # in place of a group's name, before the profile and the limits; no name has a space
OTHER_GROUP: Final = "another group"
OTHER_MEMBER: Final = "another member"
NOT_WANTED: Final = (OTHER_GROUP, OTHER_MEMBER)  # refusals by a process that is not the wanted member

Word = TypeVar("Word", Hello, Welcome, Question, Reply)
_encoder = msgspec.msgpack.Encoder()


def said(word: Hello | Welcome | Question | Reply) -> bytes:
    """The bytes of `word` on the wire, length included."""
    body = _encoder.encode(word)
    return LENGTH.pack(len(body)) + body


def heard(body: bytes | memoryview, kind: type[Word]) -> Word:
    """The decoded `body`.  Raises PeerError for malformed bytes, and for an invalid address."""
    try:
        word = msgspec.msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerError("malformed hello") from error
    for address in _addresses(word):
        if address is None:
            continue
        incarnation = address.incarnation
        if not NAME.fullmatch(address.name) or len(incarnation) != INCARNATION_DIGITS or not _is_hex(incarnation):
            raise PeerError("malformed hello")
    return word


def opened(body: bytes | memoryview) -> Hello | Question:
    """The first word of a connection.  Raises PeerError as `heard` does."""
    try:
        return heard(body, Question)
    except PeerError:
        return heard(body, Hello)


def _addresses(word: Hello | Welcome | Question | Reply) -> tuple[Address | None, ...]:
    if isinstance(word, Hello):
        return word.sender, word.expected
    if isinstance(word, Welcome):
        return (word.listener,)
    return () if word.presence is None else (word.presence.process, word.presence.first)


def padded(question: Question) -> Question:
    """The question with as many bytes as the longest usual answer."""
    question.padding = bytes(max(0, QUESTION_MIN - len(_encoder.encode(question))))
    return question


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def other_version(group: int, joiner: int) -> str:
    """The refusal of a process whose wire version differs from the one of the group."""
    return f"the group has wire version {group}, the joiner {joiner}: all members need the same version of pygroups"


def welcome(hello: Hello, me: Address, group: str) -> Welcome:
    """The answer to `hello`."""
    refusal = refused(hello, me, group)
    return Welcome(VERSION, None if refusal else me, refusal)


def refused(hello: Hello, me: Address, group: str) -> str:
    """The reason to refuse `hello`; "" if it is accepted."""
    if hello.version != VERSION:
        return other_version(VERSION, hello.version)
    if hello.group != group:
        return OTHER_GROUP
    if hello.expected != me and not (hello.expected is None and group.startswith(NO_GROUP)):
        return OTHER_MEMBER
    if hello.sender == me:
        return "it is you"
    return ""
