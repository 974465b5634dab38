"""The handshake of a connection: both members, the group and the version, before the first frame.  This module also has
the questions of discovery, which take the place of a handshake.

A member dials a connection to send frames, so each connection has frames in one direction only.  The dialing side sends
`Hello`, and the dialed side answers `Welcome`.  Each is one msgpack array of at most HELLO_MAX bytes, behind its length
in four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from pygroups.core.address import INCARNATION_DIGITS, NAME, Address
from pygroups.core.driver_events import Presence
from pygroups.core.errors import UNDECODABLE, PeerError
from pygroups.core.limits import TEXT_MAX
from pygroups.wire.frame import VERSION

LENGTH: Final = struct.Struct(">I")
CLOSING: Final = LENGTH.pack(0)  # a closing message, in place of a frame: the sender closes this connection on purpose

QUESTION_MIN: Final = 400  # bytes of a hello or a question; answers with usual names and contacts have fewer

Text = Annotated[str, Meta(max_length=TEXT_MAX)]


class Hello(msgspec.Struct, array_like=True, tag="pygroups"):
    """The first message of the dialing side."""

    version: int  # of the wire
    group: Text
    sender: Address
    contact: Text  # the address that the sender listens on
    expected: Address | None  # the member that the sender wants to reach; None: whichever process listens, in no group
    padding: Annotated[bytes, Meta(max_length=QUESTION_MIN)] = (
        b""  # so that no answer over UDP is longer than its hello
    )


class Welcome(msgspec.Struct, array_like=True, tag="welcome"):
    """The answer of the dialed side: the expected member listens here, or the reason of a refusal.

    A refusal does not name the listener.  Otherwise any process that finds the port would learn a member's address. A
    process without a group gives its address to any process that asks.
    """

    version: int
    listener: Address | None
    refusal: Text = ""


class DiscoveryQuestion(msgspec.Struct, array_like=True, tag="find"):
    """The question of discovery: which process of this group listens here?  The answer is not longer than the
    question, so no sender can use a member to send more bytes to a third host than the sender itself sends."""

    version: int  # of the wire
    group: Text
    nonce: Annotated[bytes, Meta(max_length=16)]
    presence: Presence
    padding: Annotated[bytes, Meta(max_length=QUESTION_MIN)] = b""


class DiscoveryReply(msgspec.Struct, array_like=True, tag="found"):
    """The answer to a question: the process that listens here, or the reason to refuse a process of that version."""

    version: int
    nonce: Annotated[bytes, Meta(max_length=16)]
    presence: Presence | None  # None: no process of the group listens here
    refusal: Text = ""


Answering = Callable[[DiscoveryReply], None]  # sends the answer to a question of discovery

NO_GROUP: Final = "- "  # in place of a group's name, before the profile and the limits; no name has a space
OTHER_GROUP: Final = "another group"
OTHER_MEMBER: Final = "another member"
NOT_WANTED: Final = (OTHER_GROUP, OTHER_MEMBER)  # refusals by a process that is not the wanted member

Asking = TypeVar("Asking", Hello, DiscoveryQuestion)
HandshakeMessage = TypeVar("HandshakeMessage", Hello, Welcome, DiscoveryQuestion, DiscoveryReply)
_encoder = msgspec.msgpack.Encoder()


def packed(message: Hello | Welcome | DiscoveryQuestion | DiscoveryReply) -> bytes:
    """The bytes of `message`, without its length."""
    return _encoder.encode(message)


def with_length(body: bytes) -> bytes:
    """`body` behind its length, as TCP carries it."""
    return LENGTH.pack(len(body)) + body


def encoded(message: Hello | Welcome | DiscoveryQuestion | DiscoveryReply) -> bytes:
    """The bytes of `message` behind its length, without a seal."""
    return with_length(packed(message))


def decoded(body: bytes | memoryview, kind: type[HandshakeMessage]) -> HandshakeMessage:
    """The decoded `body`.  Raises PeerError for malformed bytes, and for an invalid address."""
    try:
        message = msgspec.msgpack.decode(body, type=kind)
    except UNDECODABLE as error:
        raise PeerError("malformed hello") from error
    for address in _addresses(message):
        if address is None:
            continue
        incarnation = address.incarnation
        if not NAME.fullmatch(address.name) or len(incarnation) != INCARNATION_DIGITS or not _is_hex(incarnation):
            raise PeerError("malformed hello")
    return message


def first_message(body: bytes | memoryview) -> Hello | DiscoveryQuestion:
    """The first message on a connection.  Raises PeerError as `decoded` does."""
    try:
        return decoded(body, DiscoveryQuestion)
    except PeerError:
        return decoded(body, Hello)


def _addresses(message: Hello | Welcome | DiscoveryQuestion | DiscoveryReply) -> tuple[Address | None, ...]:
    if isinstance(message, Hello):
        return message.sender, message.expected
    if isinstance(message, Welcome):
        return (message.listener,)
    return () if message.presence is None else (message.presence.process, message.presence.first)


def padded(asking: Asking) -> Asking:
    """The hello or question with as many bytes as the longest usual answer."""
    asking.padding = bytes(max(0, QUESTION_MIN - len(_encoder.encode(asking))))
    return asking


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
        return "the sender has the address of this process"
    return ""
