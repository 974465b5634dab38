"""A fork leaves copies of sockets and locks in the child.  The child closes them at once.

While a copy is open, the kernel keeps connections and locks after the end of the parent, so the other members would
notice a crash of the parent only by timeouts.  Closing a copy has no effect on the parent.
"""

from __future__ import annotations

import os
import socket
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object that a forked child has a copy of and must not use."""

    def forked(self) -> None:
        """Called in the child: close the copied files, and change nothing that belongs to the parent."""


_watched: Final = WeakSet[Forked]()
_sockets: Final = WeakSet[socket.socket]()


def watched(thing: Forked) -> None:
    """Call `thing.forked()` in each child that is forked from now on."""
    _watched.add(thing)


def closed_in_children(sock: socket.socket) -> socket.socket:
    """Close `sock` in each child that is forked from now on.  Returns `sock`."""
    _sockets.add(sock)
    return sock


def _in_child() -> None:
    for sock in list(_sockets):
        if sock.fileno() >= 0:
            os.close(sock.detach())  # its close() would wait for a loop that counts it as in use, as uvloop does
    for thing in list(_watched):
        thing.forked()


os.register_at_fork(after_in_child=_in_child)
