"""What the two ends of a connection say before any frame: who dials whom, in which group, in which version.

Each side dials for what it sends, so a connection carries frames one way only.  The dialing side says `Hello`, the
dialed one `Welcome`; both are one msgpack array behind a length of four bytes, at most HELLO_MAX of them.
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
)  # in place of a frame: this connection is closed on purpose, its sender has not crashed

Text = Annotated[str, Meta(max_length=TEXT_MAX)]


class Hello(msgspec.Struct, array_like=True, tag="pygroups"):
    """Dialing side: this is who I am, and whom I want."""

    version: int  # of the wire
    group: Text
    sender: Address
    contact: Text  # where the sender listens
    expected: Address  # whom it wants to reach


class Welcome(msgspec.Struct, array_like=True, tag="welcome"):
    """Dialed side: the member that was wanted listens here, or why the connection is refused.

    A refusal names nobody: otherwise any process that finds the port would learn a member's address from it.
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
    """`word` as it goes on the wire, length included."""
    body = _encoder.encode(word)
    return LENGTH.pack(len(body)) + body


def heard(body: bytes | memoryview, kind: type[Word]) -> Word:
    """The word in `body`; PeerError if it is none, or names an address that cannot be."""
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
    """What to answer to `hello`."""
    refusal = refused(hello, me, group)
    return Welcome(VERSION, None if refusal else me, refusal)


def refused(hello: Hello, me: Address, group: str) -> str:
    """Why `hello` is not welcome; nothing if it is."""
    if hello.version != VERSION:
        return f"wire version {hello.version} is not {VERSION}"
    if hello.group != group:
        return OTHER_GROUP
    if hello.expected != me:
        return OTHER_MEMBER
    if hello.sender == me:
        return "it is you"
    return ""
