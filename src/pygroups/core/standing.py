"""How a member stands to the group's state; who gives one to whom follows from it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from .address import Address
from .limits import MEMBERS_MAX
from .view import ViewId


class Waits(msgspec.Struct, frozen=True, array_like=True):
    """A member that has no state yet: `provider` gives it the one of the start of `view`.  None: nobody gives it one in
    `view`, and a later view shows whether anybody has one.  `failed`: those who have a state and did not give it to
    this member; among them perhaps `provider`, until the next view names another."""

    provider: Address | None
    view: ViewId
    failed: Annotated[tuple[Address, ...], Meta(max_length=MEMBERS_MAX)] = ()


Standing = Waits | bool  # how a member stands to the group's state: it waits for one, has one (True) or keeps none
