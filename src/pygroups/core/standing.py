"""The standing of a member: whether it has the group's state, waits for it, or keeps none."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from .address import Address
from .limits import MEMBERS_MAX
from .view import ViewId


class WaitsForState(msgspec.Struct, frozen=True, array_like=True):
    """A member that waits for the state at the start of `view`.

    `provider`: the member that gives the state; None if no member gives it in `view`, so that a later view must name a
    provider.  `failed`: members that have a state and failed to give it; they can include `provider` until the next
    view names another one.
    """

    provider: Address | None
    view: ViewId
    failed: Annotated[tuple[Address, ...], Meta(max_length=MEMBERS_MAX)] = ()


ANEW: Final = "anew"
Standing = WaitsForState | bool | Literal["anew"]  # a member waits for the group's state, has it (True), keeps no state
# (False), or has a state that began anew, at this member or another one, after the group's state was lost


def has_state(standing: Standing | None) -> bool:
    """Whether a member with this standing can give a state."""
    return standing is True or standing == ANEW
