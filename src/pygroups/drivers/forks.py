"""A fork leaves copies of sockets and locks in the child.  The child closes them at once.

While a copy is open, the kernel keeps connections and locks although the process that used them has died: other
members would notice its death by time-outs only.  Closing a copy changes nothing for the parent.
"""

from __future__ import annotations

import os
import socket
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something that a child has a copy of, and must not use."""

    def forked(self) -> None:
        """This is a child now: close what was copied, and touch nothing that the parent shares."""


_watched: Final = WeakSet[Forked]()
_sockets: Final = WeakSet[socket.socket]()


def watched(thing: Forked) -> None:
    """Tell `thing` in each child that is forked from now on."""
    _watched.add(thing)


def closed_in_children(sock: socket.socket) -> socket.socket:
    """`sock`, which each child closes that is forked from now on."""
    _sockets.add(sock)
    return sock


def _in_child() -> None:
    for sock in list(_sockets):
        if sock.fileno() >= 0:
            os.close(sock.detach())  # its close() would wait for a loop that counts it as in use, as uvloop does
    for thing in list(_watched):
        thing.forked()


os.register_at_fork(after_in_child=_in_child)
