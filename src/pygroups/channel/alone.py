"""A member that is alone in its group, although its options speak of other machines: perhaps it looks in the wrong
places, and another group of the same name exists."""

from __future__ import annotations

from pygroups.drivers.contacts import Contact
from pygroups.drivers.discovery.options import DiscoverySources


def alone(sources: DiscoverySources, bind: Contact, contact: str) -> str | None:
    """The log line for a member that is alone; None if its options expect no other machine or process.

    `contact`: the address of this member for the others.
    """
    reasons = []
    others = [str(place) for place in sources.listed if str(place) != contact]
    if others:
        none = "none of the listed addresses belongs" if len(others) > 1 else "the listed address does not belong"
        reasons.append(f"{none} to another member ({', '.join(others)})")
    reasons += [f"the DNS name {name} leads to no other member" for name in sources.names]
    reasons += [f"no other member answers at the multicast address {place}" for place in sources.to_all]
    if not sources.asks and not bind.loopback:
        reasons.append(
            "it listens for other machines, and looks for members in a folder of this machine only: discovery= names "
            "the ways across machines"
        )
    if not reasons:
        return None
    return f"this member is alone in its group: {'; '.join(reasons)}"
