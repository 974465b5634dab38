"""Providers: a pure function, over facts that every member of a new view knows, pairs members that wait for a state
with members that give it.

Note: docs/layers/state_transfer.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.standing import Standing, WaitsForState, has_state
from pygroups.core.view import ViewId


class Providers(NamedTuple):
    """The decision of a view for its members without a state."""

    waits: dict[Address, WaitsForState]  # the members that wait for a state, with the provider of each
    begins: Address | None = None  # no member has a state: this one begins without, and provides for the others
    without: tuple[Address, ...] = ()  # every member that has a state failed to give it to these: they begin without


def providers(view: ViewId, members: Sequence[Address], standings: Mapping[Address, Standing]) -> Providers:
    """A provider that is still in the view goes on, unless it failed.  Otherwise the first member that has a state and
    did not fail provides the state.

    `standings` has each member's answer to the view change.  A member that waited for a state then may have one now.
    While there is another such member, no member begins without a state: the next view shows whether it has one.
    """
    holders = [member for member in members if has_state(standings.get(member))]
    needy = [member for member in members if isinstance(standings.get(member), WaitsForState | None)]
    if needy and not holders and not _may_have_one(needy[1:], standings):
        begins = needy.pop(0)
        return Providers({m: _goes_on(standings.get(m), members) or WaitsForState(begins, view) for m in needy}, begins)
    waits: dict[Address, WaitsForState] = {}
    without: list[Address] = []
    for member in needy:
        standing = standings.get(member)
        kept = _goes_on(standing, members)
        failed = standing.failed if isinstance(standing, WaitsForState) else ()
        able = next((holder for holder in holders if holder not in failed), None)
        if kept is not None:
            waits[member] = kept
        elif able is not None:
            waits[member] = WaitsForState(able, view, failed)
        elif not holders or _may_have_one([other for other in needy if other != member], standings):
            waits[member] = _waits_on(standing) or WaitsForState(None, view, failed)
        else:
            without.append(member)
    return Providers(waits, None, tuple(without))


def after_merge(standings: Mapping[Address, Standing], losers: Sequence[Address]) -> dict[Address, Standing]:
    """The standings after a merge in which the state of the winning side replaces the states of `losers`.  The losers
    stand like joiners.  A member that keeps no state goes on without one."""
    return {member: one for member, one in standings.items() if one is False or member not in losers}


def _may_have_one(members: Iterable[Address], standings: Mapping[Address, Standing]) -> bool:
    """Whether one of these members may have received, after its answer, the state for which it waited."""
    waiting = [standings.get(member) for member in members]
    return any(isinstance(standing, WaitsForState) and standing.provider is not None for standing in waiting)


def _goes_on(standing: Standing | None, members: Sequence[Address]) -> WaitsForState | None:
    """The member's present wait, if its provider can still give the state."""
    if (
        isinstance(standing, WaitsForState)
        and standing.provider in members
        and standing.provider not in standing.failed
    ):
        return standing
    return None


def _waits_on(standing: Standing | None) -> WaitsForState | None:
    """The member's present wait, if the member waits for a later view."""
    return standing if isinstance(standing, WaitsForState) and standing.provider is None else None
