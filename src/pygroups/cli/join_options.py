"""What `pygroups join` can be told: its options, and their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from pygroups.cli.options import Flag, Whole

HIDDEN = Parameter(show=False)
"""For options that the design names and that are not built: refused in one sentence, and not in the help."""


@Parameter(name="*")
@dataclass(frozen=True)
class JoinOptions:
    """The options of `pygroups join`.

    Parameters
    ----------
    name
        The member's name, unique in the group; made from host and process if not given.
    profile
        What the group promises: total (one order for all) or fifo (each sender's order).
    to
        Send the lines only to the member of this name.
    json
        Print events as JSON, one a line, also on a terminal. In a pipe this is always so.
    quiet
        Print no events; --stats still prints.
    stats
        Print the member's counters every so many seconds, as JSON.
    leave_at_eof
        Leave at the end of input, once all members have the messages.
    timeout
        Seconds that --leave-at-eof waits at most; after that it leaves with exit code 1.
    journal
        A folder to write down what this member sees; `pygroups audit` reads it.
    journal_payloads
        Write the messages into the journal too.
    bind
        Where to listen, HOST:PORT. Anything but loopback needs --insecure.
    advertise
        What other members dial, if it differs from where this one listens.
    insecure
        Listen where other machines reach it. Nothing protects the group there yet.
    discovery
        dir:/path, a folder in which members find each other, in place of the usual one.
    transport
        tcp, udp, or udp:239.1.2.3:7000 for IP multicast; all members use the same. Over udp a message has at most
        1,120 bytes.
    """

    name: str | None = None
    profile: str = "total"
    to: str | None = None
    json: Flag = False
    quiet: Flag = False
    stats: float | None = None
    leave_at_eof: Flag = False
    timeout: float | None = None
    journal: Path | None = None
    journal_payloads: Flag = False
    bind: str = "127.0.0.1:0"
    advertise: str | None = None
    insecure: Flag = False
    discovery: str | None = None
    transport: str = "tcp"
    expect: Annotated[Whole | None, HIDDEN] = None
    rejoin: Annotated[Flag, HIDDEN] = False
    secret_file: Annotated[Path | None, HIDDEN] = None
    trace: Annotated[Flag, HIDDEN] = False


DEFAULTS: Final = JoinOptions()
