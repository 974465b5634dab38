"""The journal records of UNICAST2: one for each run that an application sends to a single member.  Other layers
journal their own runs.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.columns import checksum
from pygroups.core.layer import Env
from pygroups.core.run import OfApplication, Run

TO_SELF: Final = 0  # the connection id, in the journal, of messages that a member sends to itself


def is_own(run: Run) -> bool:
    """Whether an application sent the run: it is journaled, and reported when it is given up."""
    return run.origin is not None and (not run.heads or isinstance(run.head, OfApplication))


def record(env: Env, kind: str, run: Run, receiver: Address, conn: int) -> None:
    """Journal that the run was sent or delivered, if an application sent it.  Both ends write the same columns.

    Of the pieces of a message only the last one is journaled.
    """
    if env.journaling and run.count and is_own(run):
        env.record(kind, **run.columns(), checksum=checksum(run.body), peer=receiver, connection=conn)
