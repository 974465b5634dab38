"""Transports: "tcp", "udp" (a datagram to each receiver), or "udp:239.x.y.z:port" (IP multicast)."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import BODY_MAX, Config

from .contacts import Contact, parse_contact
from .discovery.options import is_multicast
from .udp.datagrams import DATAGRAM_LARGEST, DATAGRAM_LEAST, PART

PARTS: Final = 2  # datagrams of a piece, and of a full run at first
GROWTH: Final = 8  # times so many while few runs are lost
TCP_GROWTH: Final = 4  # the same over TCP, where none is lost while a connection stands
HEADROOM: Final = 280  # bytes of a datagram for the headers and heads of a run, if names have ten letters or so
EXAMPLES: Final = "'tcp', 'udp', or 'udp:239.1.2.3:7000' for IP multicast"


class Transport(NamedTuple):
    """The transport of a member's frames."""

    kind: str  # "tcp" or "udp"
    to_all: Contact | None = None  # the multicast address that all members listen to

    def limits(self, config: Config, parts: int = PARTS) -> Config:
        """`config`, with runs that fit `parts` datagrams over UDP, and parts of a state that do so at first.
        Both grow while the network loses few runs.  A run has one datagram while it loses many.

        One lost datagram costs one run.  A frame with long names may be a little larger; such a frame has a part more.
        """
        if self.kind == "tcp":
            return msgspec.structs.replace(config, run_growth=_growth(TCP_GROWTH, config.run_bytes))
        if not DATAGRAM_LEAST <= config.datagram <= DATAGRAM_LARGEST:
            raise UsageError(
                f"config datagram={config.datagram} must be between {DATAGRAM_LEAST} and {DATAGRAM_LARGEST} bytes"
            )
        one = config.datagram - HEADROOM
        fits = one if parts == 1 else parts * (config.datagram - PART.size) - HEADROOM
        return msgspec.structs.replace(
            config,
            run_bytes=min(config.run_bytes, fits),
            run_growth=1 if parts == 1 else _growth(GROWTH, fits),
            run_bytes_lossy=one,
            state_chunk_lossy=min(config.state_chunk_lossy, fits),
        )

    def frame_bytes(self, config: Config) -> int | None:
        """The largest size of a frame with several runs; None for the limit of the wire."""
        return None if self.kind == "tcp" else config.datagram


def _growth(most: int, run_bytes: int) -> int:
    """How many times `run_bytes` a run may grow to, within the limits of the wire."""
    return max(1, min(most, BODY_MAX // 2 // max(1, run_bytes)))


TCP: Final = Transport("tcp")


def parse_transport(text: str | None) -> Transport:
    """The transport with the name `text`.  Raises UsageError for an unknown one."""
    if text in (None, "tcp"):
        return TCP
    if text == "udp":
        return Transport("udp")
    kind, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind != "udp" or not colon:
        raise UsageError(f"there is no transport {text!r}; there are: {EXAMPLES}")
    to_all = parse_contact(rest, "transport")
    if not is_multicast(to_all.host) or not to_all.port:
        raise UsageError(f"transport {text!r} has no IPv4 multicast address with a port: write udp:239.1.2.3:7000")
    return Transport("udp", to_all)
