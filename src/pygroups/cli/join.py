"""`pygroups join`: a member in the shell.  Lines of standard input go to everyone; events come as text or as JSON."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pygroups.cli.flags import naming_flags
from pygroups.cli.logs import show_warnings
from pygroups.cli.options import Flag, Whole
from pygroups.core.errors import NotBuilt, UsageError

HIDDEN = Parameter(show=False)
"""For options that the design names and that are not built: refused in one sentence, and not in the help."""


@Parameter(name="*")
@dataclass(frozen=True)
class Wishes:
    """What the shell's member is to be and to do.

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
    transport: Annotated[str | None, HIDDEN] = None
    expect: Annotated[Whole | None, HIDDEN] = None
    rejoin: Annotated[Flag, HIDDEN] = False
    secret_file: Annotated[Path | None, HIDDEN] = None
    trace: Annotated[Flag, HIDDEN] = False


AS_USUAL = Wishes()


def join(group: str = "default", /, *, wishes: Wishes = AS_USUAL) -> int:
    """Be a member in the shell: lines of input go to everyone, events are printed.

    Parameters
    ----------
    group
        The group's name; members of one user on this machine that give the same name find each other.
    """
    _check(wishes)
    show_warnings()
    with naming_flags():
        return asyncio.run(_member(group, wishes))


async def _member(group: str, wishes: Wishes) -> int:
    from pygroups import Channel
    from pygroups.cli.shell import Shell

    channel = Channel(
        group,
        profile=wishes.profile,
        name=wishes.name,
        bind=wishes.bind,
        advertise=wishes.advertise,
        transport=wishes.transport,
        discovery=wishes.discovery,
        insecure=wishes.insecure,
        journal=wishes.journal,
        journal_payloads=wishes.journal_payloads,
    )
    return await Shell(channel, wishes).run()


def _check(wishes: Wishes) -> None:
    """UsageError for what cannot be, NotBuilt for what is not there yet."""
    for name in ("expect", "rejoin", "secret_file", "trace"):
        if getattr(wishes, name) not in (None, False):
            raise NotBuilt(f"--{name.replace('_', '-')} is not built yet: leave it out")
    if wishes.journal_payloads and wishes.journal is None:
        raise UsageError("--journal-payloads needs --journal DIR, the folder to write to")
    if wishes.stats is not None and not wishes.stats > 0:
        raise UsageError(f"--stats {wishes.stats} must be a number of seconds above 0")
    if wishes.timeout is not None and not wishes.timeout >= 0:
        raise UsageError(f"--timeout {wishes.timeout} must be a number of seconds, 0 or more")
    if wishes.timeout is not None and not wishes.leave_at_eof:
        raise UsageError("--timeout says how long --leave-at-eof waits: give both or neither")
