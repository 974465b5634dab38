"""The heads of UNICAST2.  Note: docs/layers/unicast2.md."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

CONTROL: Final = 0  # the lane of runs without payload
DATA: Final = 1

Conn = Annotated[int, Meta(ge=1, le=1 << 62)]  # counts the connections of one incarnation to all peers: later is higher
LaneNumber = Annotated[int, Meta(ge=CONTROL, le=DATA)]
Seq = Annotated[int, Meta(ge=0, le=1 << 62)]


class Data(msgspec.Struct, array_like=True, tag=20):
    """Sender to receiver, on every run."""

    conn: Conn
    lane: LaneNumber
    seq: Seq  # 0, 1, 2 ... in this lane of this connection
    low: Seq  # the lowest number that is not acknowledged: the receiver had all runs before it once
    opens: bool  # a receiver that knows nothing of the lane may begin with this run (`first` in design note 004)


class Ack(msgspec.Struct, array_like=True, tag=21):
    """Receiver to sender: everything before `next` was delivered."""

    conn: Conn
    lane: LaneNumber
    next: Seq


class Resend(msgspec.Struct, array_like=True, tag=22):
    """Receiver to sender: [low, high) is missing."""

    conn: Conn
    lane: LaneNumber
    low: Seq
    high: Seq


class SendFirst(msgspec.Struct, array_like=True, tag=23):
    """Receiver to sender: I do not know where this lane begins; send the lowest run that you still hold, with
    `opens`."""

    conn: Conn
    lane: LaneNumber


class Start(msgspec.Struct, array_like=True, tag=24):
    """Sender to receiver, asked for runs that it no longer holds: you had everything before `seq`; go on there."""

    conn: Conn
    lane: LaneNumber
    seq: Seq


class Closed(msgspec.Struct, array_like=True, tag=25):
    """Sender to receiver, asked about a connection that it gave up: no run follows on it."""

    conn: Conn
