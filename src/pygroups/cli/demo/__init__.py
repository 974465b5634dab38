"""`pygroups demo`: four real processes, one order, one of them killed; and a proof that nothing was lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pygroups.cli.options import Flag, Whole
from pygroups.core.errors import UsageError

MEMBERS_MAX = 26
"""So many members have a letter for a name."""


def demo(
    *,
    input: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    out: Path = Path("demo-out"),
    members: Whole = 4,
    seed: Whole | None = None,
    no_kill: Flag = False,
    no_audit: Flag = False,
) -> int:
    """See it work: four processes, one order, one of them killed.

    Each member multicasts a feed of real records and keeps a SQLite table of everybody's. While all still have records
    to send, the one that gives them their order is killed; later it comes back, gets the state, and goes on. At the end
    all tables are compared, and the journals are audited. Exit code 0 only if all holds.

    Parameters
    ----------
    input
        Files to send in place of the records that come with pygroups; each line is a record.
    out
        The folder for the tables, the journals, demo.json and report.html.
    members
        How many processes.
    seed
        Repeats the moment of the kill.
    no_kill
        Kill nobody.
    no_audit
        Leave the audit out, which needs Spark.
    """
    from pygroups.cli.demo.director import direct
    from pygroups.cli.demo.feeds import bundled_feeds, input_feeds
    from pygroups.cli.demo.settings import DemoSettings

    if not 1 <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} is not from 1 to {MEMBERS_MAX}")
    if members < 2 and not no_kill:
        raise UsageError("a group of one cannot lose a member: say --members 2 or more, or --no-kill")
    feeds = input_feeds(input) if input else bundled_feeds()
    moment = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    return direct(DemoSettings(feeds, out, members, moment, kill=not no_kill, audit=not no_audit))
