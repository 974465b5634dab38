"""The error for a place where no process of profile `unicast` answers."""

from __future__ import annotations

from pygroups.core.errors import NotSent

from .contacts import Contact


def no_process_at(contact: Contact, *, refused: bool, sealed: bool = False) -> NotSent:
    """The error for a message to `contact`.  `refused`: no process listens there, or the process that listens there has
    other settings.  `sealed`: it has another secret.  Otherwise no answer came in time."""
    if sealed:
        return NotSent(
            f"the message was not sent: the process at {contact} has another secret, or one of the two has none: give "
            "both the same secret="
        )
    if refused:
        return NotSent(
            f"the message was not sent: no process with profile 'unicast', the same limits and the same version of "
            f"pygroups listens at {contact}: start this process first"
        )
    return NotSent(
        f"the message was not sent: {contact} gives no answer: check the place, and the network to this place"
    )
