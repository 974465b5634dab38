"""The handshake of a connection: both members, the group and the version, before the first frame.

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
from pygroups.core.errors import PeerError
from pygroups.core.limits import TEXT_MAX
from pygroups.wire.frame import VERSION

LENGTH: Final = struct.Struct(">I")
FAREWELL: Final = LENGTH.pack(
    0
)  # in place of a frame: the sender closes this connection on purpose, and has not crashed

Text = Annotated[str, Meta(max_length=TEXT_MAX)]


class Hello(msgspec.Struct, array_like=True, tag="pygroups"):
    """The first message of the dialing side."""

    version: int  # of the wire
    group: Text
    sender: Address
    contact: Text  # the address that the sender listens on
    expected: Address  # the member that the sender wants to reach


class Welcome(msgspec.Struct, array_like=True, tag="welcome"):
    """The answer of the dialed side: the expected member listens here, or the reason of a refusal.

    A refusal does not name the listener.  Otherwise any process that finds the port would learn a member's address.
    """

    version: int
    listener: Address | None
    refusal: Text = ""


OTHER_GROUP: Final = "another group"
OTHER_MEMBER: Final = "another member"
NOT_WANTED: Final = (OTHER_GROUP, OTHER_MEMBER)  # refusals by a process that is not the wanted member

Word = TypeVar("Word", Hello, Welcome)
_encoder = msgspec.msgpack.Encoder()


def said(word: Hello | Welcome) -> bytes:
    """The bytes of `word` on the wire, length included."""
    body = _encoder.encode(word)
    return LENGTH.pack(len(body)) + body


def heard(body: bytes | memoryview, kind: type[Word]) -> Word:
    """The decoded `body`.  Raises PeerError for malformed bytes, and for an invalid address."""
    try:
        word = msgspec.msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerError("malformed hello") from error
    addresses = (word.sender, word.expected) if isinstance(word, Hello) else (word.listener,)
    for address in addresses:
        if address is None:
            continue
        incarnation = address.incarnation
        if not NAME.fullmatch(address.name) or len(incarnation) != INCARNATION_DIGITS or not _is_hex(incarnation):
            raise PeerError("malformed hello")
    return word


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def welcome(hello: Hello, me: Address, group: str) -> Welcome:
    """The answer to `hello`."""
    refusal = refused(hello, me, group)
    return Welcome(VERSION, None if refusal else me, refusal)


def refused(hello: Hello, me: Address, group: str) -> str:
    """The reason to refuse `hello`; "" if it is accepted."""
    if hello.version != VERSION:
        return f"wire version {hello.version} is not {VERSION}"
    if hello.group != group:
        return OTHER_GROUP
    if hello.expected != me:
        return OTHER_MEMBER
    if hello.sender == me:
        return "it is you"
    return ""
