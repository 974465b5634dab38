"""The side of a merge whose state all members take, decided once, by the leader of the merge.  See MERGE2."""

from __future__ import annotations

from collections.abc import Mapping

from pygroups.core.address import Address
from pygroups.core.merge_side import Chooses, MergeSide
from pygroups.core.standing import WaitsForState
from pygroups.core.view import AgreedView

from ..heads import CollectAck

Sides = tuple[tuple[AgreedView, tuple[Address, ...]], ...]  # the earlier views, with the members that take part


def winner(sides: Sides, answers: Mapping[Address, CollectAck], chooses: Chooses | None) -> int | None:
    """The index of the side that wins; None: each member keeps its state.

    Only a side with a member that has a state can win.  Without such a side all can, if no member waits for a state.
    """
    if chooses is None:
        return None
    standings = [[answers[member].standing for member in going] for _, going in sides]
    able = [index for index, side in enumerate(standings) if True in side]
    if not able and not any(isinstance(standing, WaitsForState) for side in standings for standing in side):
        able = list(range(len(sides)))
    if len(able) < 2:
        return able[0] if able else None
    offered = [_side(*sides[index], answers) for index in able]
    chosen = chooses(tuple(offered))
    return None if chosen is None else able[offered.index(chosen)]


def _side(view: AgreedView, going: tuple[Address, ...], answers: Mapping[Address, CollectAck]) -> MergeSide:
    return MergeSide(view.id, tuple(sorted(going)), answers[going[0]].primary)
