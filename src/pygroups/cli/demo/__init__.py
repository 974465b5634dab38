"""`pygroups demo`: runs a group of four processes, kills one of them, and checks that no record is lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pygroups.cli.options import Flag, Whole
from pygroups.core.errors import UsageError
from pygroups.core.services import PRIMARY, TOTAL

MEMBERS_MAX = 26
"""Each member has a letter as its name."""


def demo(
    *,
    input: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    out: Path = Path("demo-out"),
    members: Whole = 4,
    profile: str = "total",
    seed: Whole | None = None,
    no_kill: Flag = False,
    no_audit: Flag = False,
) -> int:
    """Run a group of four processes, kill one of them, and check that no record is lost.

    Parameters
    ----------
    input
        Files to send instead of the bundled records. Each line is a record.
    out
        The folder for the tables, the journals, demo.json and report.html.
    members
        The number of processes.
    profile
        The guarantees of the group: total, total1999 (the same over UDP), or uniform, in which a majority of the
        members decides each view.
    seed
        Repeat the kill at the moment of an earlier demo with this seed.
    no_kill
        Kill no process.
    no_audit
        Leave out the audit, which needs Spark.
    """
    from pygroups.cli.demo.director import direct
    from pygroups.cli.demo.feeds import bundled_feeds, input_feeds
    from pygroups.cli.demo.settings import DemoSettings
    from pygroups.layers.profiles import PROFILES, profile_named

    if not 1 <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} must be from 1 to {MEMBERS_MAX}")
    if members < 2 and not no_kill:
        raise UsageError("a group of one cannot lose a member: give --members 2 or more, or --no-kill")
    if TOTAL not in profile_named(profile).services:
        ordered = " or ".join([one.name for one in PROFILES.values() if TOTAL in one.services])
        raise UsageError(f"--profile {profile}: the demo compares tables, which need one order: give {ordered}")
    if members == 2 and PRIMARY in profile_named(profile).services and not no_kill:
        raise UsageError(
            f"--profile {profile} with 2 members: the second cannot go on without the first; give --members 3 or more, "
            "or --no-kill"
        )
    feeds = input_feeds(input) if input else bundled_feeds()
    moment = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    return direct(DemoSettings(feeds, out, members, moment, kill=not no_kill, audit=not no_audit, profile=profile))
