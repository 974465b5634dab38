"""The events of STATE_TRANSFER: the channel gives and sets states, GMS asks how members stand to the state."""

from __future__ import annotations

import msgspec

from .address import Address
from .events import Event, Marks, Missing
from .standing import Standing
from .view import ViewId


class StateStanding(Event):
    """Down, state_transfer to gms: the new standing of this member."""

    standing: Standing


class StateWanted(Event):
    """Up, state_transfer to the application: give `joiners` the state at the start of `view`, which comes next."""

    view: ViewId
    joiners: tuple[Address, ...]
    digest: Marks  # the marks of this member just before the view: the state contains the messages below them ...
    lacks: Missing = msgspec.field(default_factory=dict)  # ... without these


class StateChunk(Event):
    """Down, the application to state_transfer, at the provider: the next part of the state for `joiner`.

    With `none` this member has no state, and the joiner begins without one.  `lacks`, with the last part, is that of
    the request.
    """

    view: ViewId
    joiner: Address
    data: bytes
    last: bool
    none: bool = False
    lacks: Missing = msgspec.field(default_factory=dict)


class StateFailed(Event):
    """Down, the application to state_transfer, at the provider: get_state() failed; `joiner` gets no state from
    here."""

    view: ViewId
    joiner: Address
    reason: str


class ViewWanted(Event):
    """Down, state_transfer to gms: the provider of this joiner gives no state.  A view change must choose another
    one."""


class StateTaken(Event):
    """Up, state_transfer to the application, at the provider: `joiner` has `chunks` parts.  None: `joiner` needs no
    more parts."""

    view: ViewId
    joiner: Address
    chunks: int | None


class StateArrived(Event):
    """Up, state_transfer to the application, at the joiner: the next part of the state at the start of `view`.

    With `none` there is no state, because no remaining member has one.  `lacks`, with the last part: the messages below
    the marks of the state that it does not contain.
    """

    view: ViewId
    provider: Address
    data: bytes
    last: bool
    none: bool = False
    lacks: Missing = msgspec.field(default_factory=dict)
