"""What a process should have where a majority decides each view: the log lines of a channel that lacks it."""

from __future__ import annotations

from collections.abc import Iterator

from pygroups.core.services import PRIMARY
from pygroups.drivers.contacts import parse_contact

from .options import Options


def advice(options: Options) -> Iterator[str]:
    """A sentence for each option that is allowed, and dangerous."""
    if PRIMARY not in options.chosen_profile.services:
        return
    needed = ("name", "journal") if options.sources.asks else ("journal",)  # on one machine the folder has the names
    missing = [f"{name}=" for name in needed if getattr(options, name) is None]
    if missing:
        yield (
            f"this channel is without {' and '.join(missing)} so that after a crash no process can answer for it, and "
            "if half of the members crash, the others can stay blocked for good: give each process a journal folder "
            "that it uses again when it starts again" + (", and a name" if options.sources.asks else "")
        )
    if options.expect is None and not parse_contact(options.bind).loopback:
        yield (
            "this member listens for other machines, and without expect= the lock of the discovery folder decides who "
            "founds the group: all processes must run on one machine, or give expect= the number of all processes"
        )
