"""The messages of STATE_TRANSFER.  Note: docs/layers/state_transfer.md."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.view import ViewId

from ..streams.gaps import OriginRanges

Count = Annotated[int, Meta(ge=0, le=1 << 40)]


class StateData(msgspec.Struct, array_like=True, tag=90):
    """Provider to joiner: part `number` of the state of the start of `view`; the part itself is the run's payload."""

    view: ViewId
    number: Count  # from 0
    last: bool
    none: bool  # there is no state here
    lacks: OriginRanges | None = {}  # with the last part: what the state does not contain; None: too much for a head
    anew: bool = False  # this state began without the state of the group, which was lost


class StateAck(msgspec.Struct, array_like=True, tag=91):
    """Joiner to provider: the parts below `next` have arrived."""

    view: ViewId
    next: Count


class StateDone(msgspec.Struct, array_like=True, tag=92):
    """Joiner to all: I have the state of the start of `view` now."""

    view: ViewId


class StateBegin(msgspec.Struct, array_like=True, tag=93):
    """Joiner to provider: I have installed `view`; send the parts."""

    view: ViewId


class StateRefused(msgspec.Struct, array_like=True, tag=94):
    """Provider to joiner: I cannot give you the state of the start of `view`; let another member do it."""

    view: ViewId
