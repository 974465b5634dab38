"""The options of `pygroups join`, and their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from pygroups.cli.options import Flag, Whole


@Parameter(name="*")
@dataclass(frozen=True)
class JoinOptions:
    """The options of `pygroups join`.

    Parameters
    ----------
    name
        The member's name, unique in the group. By default made from the host name and the process id.
    profile
        The guarantees of the group: total (one order for all members), fifo (the order of each sender), uniform (one
        order, and a majority decides each view: what any member delivered, all survivors of the majority deliver),
        uniform-fifo or total1999 (as total, over datagrams). gossip is for many processes: messages arrive with high
        probability, or are announced as gaps. unicast is for two processes without a group.
    to
        Send the lines only to the member with this name. With --profile unicast: to the process at HOST:PORT.
    json
        Print events as JSON, one on each line, also on a terminal. In a pipe this is the default.
    quiet
        Print no events. --stats still prints.
    stats
        Print the member's counters as JSON, at this interval in seconds.
    leave_at_eof
        Leave at the end of the input, when all members, or the receiver of --to, have the messages.
    timeout
        The longest wait of --leave-at-eof, in seconds. After this time the member leaves with exit code 1.
    journal
        A folder for the journal, the log of this member's events, in files of 64 MiB. `pygroups audit` and `pygroups
        ingest` read journals. With --profile uniform, a process that starts again after a crash uses the same folder to
        answer for its former life (with --name, if --discovery names other machines).
    journal_payloads
        Write the messages into the journal too.
    on_journal_lost
        When the journal cannot be written, for instance on a full disk: continue without it, or leave the group. The
        exit code is 1 in both cases.
    bind
        The address to listen on, HOST:PORT. An address outside loopback needs --secret-file, or --insecure.
    advertise
        The address that other members connect to, if it differs from --bind. Port 0 is the port of --bind.
    insecure
        Allow an address that other machines can reach without --secret-file. No encryption or authentication protects
        the group there.
    secret_file
        The file with the keys of the group, which `pygroups secret new FILE` makes; all members need the same keys.
        Everything that the members send is then encrypted and authenticated. By default the file that
        PYGROUPS_SECRET_FILE in the environment names, if there is one.
    discovery
        Where members find each other: dir:/path (a folder, the same one for all processes), HOST:PORT,HOST:PORT
        (addresses), dns:NAME:PORT, udp:239.1.2.3:7001 (IP multicast), cache:/path (remembers addresses). Repeat the
        option for several.
    min_members
        Wait until the group has so many members, this one included, before the lines of the input are sent.
    expect
        With --profile uniform or uniform-fifo: the number of all processes that may take part in the first view.
        Needed where members find each other over the network. In a folder of one machine a lock decides without it.
    rejoin
        When the other members have excluded this member, join again as a new member. Without the option the command
        ends with exit code 1.
    transport
        tcp, udp, or udp:239.1.2.3:7000 for IP multicast; all members use the same. By default tcp, and with --profile
        total1999 or gossip udp.
    late_join_handler
        With --profile gossip: a folder in which this member keeps messages for ten minutes, for members that come late
        or come back after a pause. The next process that is given the folder hands them on, too.
    catch_up
        With --profile gossip: begin with the messages that others still hold, and not with those that come after the
        join.
    trace
        Print a line to standard error for each message and each event that passes from one layer of the protocol stack
        to the next.
    """

    name: str | None = None
    profile: str = "total"
    to: str | None = None
    json: Flag = False
    quiet: Flag = False
    stats: float | None = None
    leave_at_eof: Flag = False
    timeout: float | None = None
    journal: str | None = None
    journal_payloads: Flag = False
    on_journal_lost: Literal["continue", "leave"] = "continue"
    bind: str = "127.0.0.1:0"
    advertise: str | None = None
    insecure: Flag = False
    discovery: tuple[str, ...] = ()
    min_members: Whole | None = None
    expect: Whole | None = None
    rejoin: Flag = False
    transport: str | None = None
    late_join_handler: str | None = None
    catch_up: Flag = False
    trace: Flag = False
    secret_file: Annotated[Path | None, Parameter(env_var="PYGROUPS_SECRET_FILE")] = None


DEFAULTS: Final = JoinOptions()
