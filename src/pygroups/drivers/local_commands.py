"""Commands to the members on this machine: each member listens on a unix socket that only its own user may use.

The sockets of a group are in /tmp/pygroups-UID/GROUP, independent of the discovery of the group.  The name of a socket
is the incarnation of its member, so that the path stays short enough for the kernel.  A command is one line of JSON
(`LocalCommand`), the answer is another line (`CommandAnswer`), and the connection ends.
"""

from __future__ import annotations

import contextlib
import re
import socket
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE
from pygroups.core.limits import TEXT_MAX

from .discovery.entries import address_of, living, own_folder
from .discovery.options import default_folder

COMMAND_MAX: Final = 1_024  # bytes of a command
ANSWER_MAX: Final = 1 << 20  # bytes of an answer: it may list the members of a view
PATIENCE: Final = 5.0  # seconds until a command counts as unanswered, at both ends
_SOCKET: Final = re.compile(r"[0-9a-f]{1,32}")

Text = Annotated[str, Meta(max_length=TEXT_MAX)]


class LocalCommand(msgspec.Struct):
    """A command.  `vouch`: an operator confirms that `member` has ended for good."""

    call: Literal["vouch"]
    member: Address


class CommandAnswer(msgspec.Struct):
    """The answer of a member: its address, the members of its view, and the outcome; see core.events.VouchedFor."""

    me: Address
    members: list[Address]
    outcome: Literal["taken", "unknown", "alive"]


def command_in(line: bytes) -> LocalCommand | None:
    """The command that `line` has; None for other bytes."""
    try:
        return msgspec.json.decode(line, type=LocalCommand)
    except UNDECODABLE:
        return None


def folder_of(group: str) -> Path:
    """The folder with the sockets of the members of `group` on this machine, of this user."""
    return default_folder().root / group


def sockets_in(folder: Path) -> list[Path]:
    """The sockets in a group's folder, also those of ended members.  Raises OSError if the folder exists and another
    user has access to it."""
    if not folder.exists():
        return []
    for path in (folder.parent, folder):
        own_folder(path)
    return sorted(path for path in folder.iterdir() if _SOCKET.fullmatch(path.name) and path.is_socket())


def entries_in(folder: Path) -> list[Address]:
    """The living processes of a group that uses a folder for discovery, with a socket or without one."""
    addresses = [address_of(path.name) for path in folder.iterdir()] if folder.exists() else []
    return [address for address in addresses if address is not None and living(folder / str(address), 0) is not None]


def ask(path: Path, command: LocalCommand, patience: float = PATIENCE) -> CommandAnswer | None:
    """The answer of the member whose socket is at `path`.  None if the member has ended; its socket is then removed.

    Raises TimeoutError if the member does not answer within `patience` seconds, and OSError if the member ends or fails
    meanwhile.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(patience)
        try:
            sock.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            return None
        sock.sendall(msgspec.json.encode(command) + b"\n")
        with sock.makefile("rb") as file:
            line = file.readline(ANSWER_MAX)
    try:
        return msgspec.json.decode(line, type=CommandAnswer)
    except UNDECODABLE as error:
        raise ConnectionError(f"no answer came from {path}") from error
