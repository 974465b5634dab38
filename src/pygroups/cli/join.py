"""`pygroups join`: a member in the shell.  The command sends lines of standard input, and prints events as text or
JSON."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pygroups.cli.flags import naming_flags
from pygroups.cli.join_options import DEFAULTS, JoinOptions
from pygroups.cli.logs import show_chosen_address, show_trace, show_warnings
from pygroups.core.errors import UsageError
from pygroups.core.services import GOSSIP, MEMBERSHIP


def join(group: str | None = None, /, *, options: JoinOptions = DEFAULTS) -> int:
    """Join a group from the shell: send lines of input to all members, and print events.

    Parameters
    ----------
    group
        The name of the group, by default "default". Members of one user on this machine with the same group name find
        each other. With --profile unicast there is no group: --to names the process that gets the lines.
    """
    _check(group, options)
    show_warnings()
    show_chosen_address()
    if options.trace:
        show_trace()
    with naming_flags():
        return asyncio.run(_member(group, options))


async def _member(group: str | None, options: JoinOptions) -> int:
    from pygroups import Channel, Config
    from pygroups.cli.shell import Shell

    if group is None and not _has_no_group(options.profile):
        group = "default"
    channel = Channel(
        group,
        profile=options.profile,
        name=options.name,
        bind=options.bind,
        advertise=options.advertise,
        transport=options.transport,
        discovery=options.discovery or None,
        min_members=options.min_members,
        expect=options.expect,
        rejoin=options.rejoin,
        secret=options.secret_file,
        insecure=options.insecure,
        journal=options.journal,
        journal_payloads=options.journal_payloads,
        config=Config(
            on_journal_lost=options.on_journal_lost,
            late_join_handler=options.late_join_handler or False,
            catch_up=options.catch_up,
        ),
    )
    return await Shell(channel, options).run()


def _has_no_group(profile: str) -> bool:
    return MEMBERSHIP not in _services(profile)


def _services(profile: str) -> frozenset[str]:
    from pygroups.layers.profiles import profile_named

    return profile_named(profile).services


def _check(group: str | None, options: JoinOptions) -> None:
    """Raise UsageError for wrong options."""
    if options.secret_file == Path():
        raise UsageError(
            "the name of the secret's file is empty: give --secret-file FILE, or unset PYGROUPS_SECRET_FILE for a "
            "group without a secret"
        )
    if options.journal_payloads and options.journal is None:
        raise UsageError("--journal-payloads needs --journal DIR, the folder to write to")
    if options.on_journal_lost == "leave" and options.journal is None:
        raise UsageError("--on-journal-lost needs --journal DIR, the folder to write to")
    if options.stats is not None and not options.stats > 0:
        raise UsageError(f"--stats {options.stats} must be a number of seconds above 0")
    if options.timeout is not None and not options.timeout >= 0:
        raise UsageError(f"--timeout {options.timeout} must be a number of seconds, 0 or more")
    _check_gossip(options)
    alone = _has_no_group(options.profile)
    if alone and group is not None:
        raise UsageError(f"--profile {options.profile} has no group: leave out the name of the group")
    if alone and options.to is None and options.leave_at_eof:
        raise UsageError("--leave-at-eof needs --to HOST:PORT: without it the process only receives")
    if alone and options.to is not None:
        from pygroups.drivers.contacts import checked_place

        checked_place(options.to, insecure=options.insecure or options.secret_file is not None)
    if options.timeout is not None and not options.leave_at_eof:
        raise UsageError("--timeout limits the wait of --leave-at-eof: give both options or neither")


def _check_gossip(options: JoinOptions) -> None:
    if options.late_join_handler == "":
        raise UsageError("--late-join-handler '' names no folder: give the path of a folder")
    given = {"--late-join-handler": options.late_join_handler is not None, "--catch-up": options.catch_up}
    for flag in [flag for flag, is_given in given.items() if is_given]:
        if GOSSIP not in _services(options.profile):
            raise UsageError(f"{flag} is for --profile gossip, whose members may miss messages: leave it out")
