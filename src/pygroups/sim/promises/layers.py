"""views-in-order: each layer of a member gets each view once, in the order in which the application gets them.

A layer that keeps a view back, or gets an old view again, would handle the runs of one view by the rules of another.
"""

from __future__ import annotations

from collections.abc import Mapping

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Rest


class ViewsInOrder(Check):
    """Checks that each layer of a member gets each view once, in the order in which the application gets the views."""

    promises = ("views-in-order",)

    def __init__(self) -> None:
        self.layers: dict[Address, Mapping[str, list[ViewId]]] = {}
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"views-in-order": self.judged}

    def passed_layers(self, member: Address, view: ViewId, layers: Mapping[str, list[ViewId]]) -> None:
        self.layers[member] = layers
        for name, seen in layers.items():
            self.judged += 1
            if seen[:1] != [view]:
                got = f"got {seen[0]}" if seen else "has not got this view"
                self.broken(
                    "views-in-order", f"the application gets the view, and {name} {got}", member=member, view=view
                )
            del seen[:1]

    def settled(self, rests: list[Rest]) -> None:
        for rest in rests:
            for name, seen in self.layers.get(rest.member, {}).items():
                if seen:
                    detail = f"{name} got the view, and the application did not"
                    self.broken("views-in-order", detail, member=rest.member, view=seen[0])
