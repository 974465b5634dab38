"""`pygroups join`: a member in the shell.  It sends lines of standard input, and prints events as text or JSON."""

from __future__ import annotations

import asyncio

from pygroups.cli.flags import naming_flags
from pygroups.cli.join_options import DEFAULTS, JoinOptions
from pygroups.cli.logs import show_warnings
from pygroups.core.errors import NotBuilt, UsageError


def join(group: str = "default", /, *, options: JoinOptions = DEFAULTS) -> int:
    """Join a group from the shell: send lines of input to all members, and print events.

    Parameters
    ----------
    group
        The name of the group. Members of one user on this machine with the same group name find each other.
    """
    _check(options)
    show_warnings()
    with naming_flags():
        return asyncio.run(_member(group, options))


async def _member(group: str, options: JoinOptions) -> int:
    from pygroups import Channel
    from pygroups.cli.shell import Shell

    channel = Channel(
        group,
        profile=options.profile,
        name=options.name,
        bind=options.bind,
        advertise=options.advertise,
        transport=options.transport,
        discovery=options.discovery,
        insecure=options.insecure,
        journal=options.journal,
        journal_payloads=options.journal_payloads,
    )
    return await Shell(channel, options).run()


def _check(options: JoinOptions) -> None:
    """Raise UsageError for wrong options, and NotBuilt for options that are not built yet."""
    for name in ("expect", "rejoin", "secret_file", "trace"):
        if getattr(options, name) not in (None, False):
            raise NotBuilt(f"--{name.replace('_', '-')} is not built yet: leave it out")
    if options.journal_payloads and options.journal is None:
        raise UsageError("--journal-payloads needs --journal DIR, the folder to write to")
    if options.stats is not None and not options.stats > 0:
        raise UsageError(f"--stats {options.stats} must be a number of seconds above 0")
    if options.timeout is not None and not options.timeout >= 0:
        raise UsageError(f"--timeout {options.timeout} must be a number of seconds, 0 or more")
    if options.timeout is not None and not options.leave_at_eof:
        raise UsageError("--timeout limits the wait of --leave-at-eof: give both options or neither")
