"""The membership of a socket in an IP multicast address, which the kernel drops together with the network interface.

A container that is connected to its network again, for instance, has a new interface.  No error tells a process that
its socket hears nothing any more, so the process asks the kernel to join every two seconds: the kernel refuses that
while the socket is a member.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

LOOK_SECONDS: Final = 2.0


class MulticastMembership:
    """Looks every two seconds whether a socket is a member of the address `group`, on the interface with the address
    `here` (0.0.0.0: the system's choice).

    `renewed` is called when it is not: it returns a new socket, which has joined.  The old socket would keep an entry
    for each interface that is gone, and the kernel allows 20.
    """

    def __init__(
        self, group: str, here: str, loop: asyncio.AbstractEventLoop, renewed: Callable[[], socket.socket]
    ) -> None:
        self.here = socket.inet_aton(here)
        self.request = socket.inet_aton(group) + self.here
        self.loop = loop
        self.renewed = renewed
        self.listening: socket.socket | None = None
        self.timer: asyncio.TimerHandle | None = None

    def join(self, listening: socket.socket, sending: socket.socket) -> None:
        """Make `listening` a member, and let `sending` send on the same interface.  Raises OSError."""
        listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, self.request)
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, self.here)

    def watch(self, listening: socket.socket) -> None:
        """Look from now on whether `listening` is still a member."""
        self.listening = listening
        self.timer = self.loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        assert self.listening is not None
        listening = self.listening
        with suppress(OSError):  # refused while the socket is a member, and while the interface is away
            listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, self.request)
            listening = self.renewed()
        self.watch(listening)

    def close(self) -> None:
        """Look no more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
