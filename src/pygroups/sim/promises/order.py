"""total-order and gap-free-prefix, in each view separately.

While all members deliver the same sequence, the check keeps one list per view, and each delivery is one comparison.
After the first difference it compares all members exactly, because a member may lag behind at the end of a view.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed

Key = tuple[Address, int]  # origin and first number: which run


class OneOrder(Check):
    """No two members deliver two messages of a view in opposite orders, and no member skips a message that comes before
    a delivered message."""

    promises = ("total-order", "gap-free-prefix")

    def __init__(self) -> None:
        self.sequences: dict[ViewId, list[Key]] = {}
        self.lengths: dict[ViewId, dict[Address, int]] = {}  # number of deliveries of each member
        self.apart: dict[ViewId, dict[Address, list[Key]]] = {}  # the sequence of each member, after a difference
        self.left: dict[ViewId, dict[Address, None]] = {}  # members that deliver nothing more in a view
        self.last: dict[Address, ViewId] = {}

    def facts(self) -> dict[str, int]:
        together = [list(lengths.values()) for view, lengths in self.lengths.items() if view not in self.apart]
        together += [list(map(len, own.values())) for own in self.apart.values()]
        compared = sum(sum(lengths) for lengths in together if sum(map(bool, lengths)) > 1)
        return dict.fromkeys(self.promises, compared)

    def viewed(self, view: Viewed) -> None:
        """Note the new view; a member that delivers nothing in it has an empty sequence."""
        self._leaves(view.member)
        self.last[view.member] = view.id
        self.lengths.setdefault(view.id, {}).setdefault(view.member, 0)

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self._leaves(member)

    def settled(self, rests: list[Rest]) -> None:
        for rest in rests:
            view = self.last.get(rest.member)
            if view in self.apart:
                self._examine_gaps(view, rest.member)

    def _leaves(self, member: Address) -> None:
        """Note that `member` delivers nothing more in its view, and compare its sequence."""
        view = self.last.get(member)
        if view is None:
            return
        self.left.setdefault(view, {})[member] = None
        if view in self.apart:
            self._examine_gaps(view, member)

    def delivered(self, delivery: Delivery) -> None:
        view, member, key = delivery.view, delivery.member, (delivery.origin, delivery.first)
        if view is None:
            return  # initial-view reports this
        if self.apart and view in self.apart:
            self.apart[view].setdefault(member, []).append(key)
            self._examine(view, member)
            return
        sequence, lengths = self.sequences.get(view), self.lengths.get(view)
        if sequence is None:
            sequence = self.sequences[view] = []
        if lengths is None:
            lengths = self.lengths[view] = {}
        at = lengths.get(member, 0)
        if at == len(sequence):
            sequence.append(key)
        elif sequence[at] != key:
            self.apart[view] = {one: sequence[:length] for one, length in lengths.items()}
            self.apart[view].setdefault(member, []).append(key)
            self._examine(view, member)
            return
        lengths[member] = at + 1

    def _examine(self, view: ViewId, member: Address) -> None:
        """Compare `member`, which delivers in `view`, with every other member."""
        left = self.left.get(view, {})
        for other in self.apart[view]:
            if other != member:
                self._compare_order(view, member, other)
                if other in left:
                    self._compare_prefixes(view, member, other)

    def _examine_gaps(self, view: ViewId, lacking: Address) -> None:
        for other in self.apart[view]:
            if other != lacking:
                self._compare_prefixes(view, other, lacking)

    def _compare_order(self, view: ViewId, one: Address, other: Address) -> None:
        ours, theirs = self.apart[view][one], self.apart[view][other]
        places = {key: place for place, key in enumerate(theirs)}
        before: Key | None = None
        for key in ours:
            if key not in places:
                continue
            if before is not None and places[before] > places[key]:
                detail = f"one member delivered {_name(before)} before this message, the other one after it"
                self.broken("total-order", detail, member=one, other=other, message=key, view=view)
            before = key

    def _compare_prefixes(self, view: ViewId, one: Address, lacking: Address) -> None:
        """Check that `lacking` has every message that `one` delivered before the last message that both have."""
        ours, theirs = self.apart[view][one], set(self.apart[view].get(lacking, []))
        missing: Key | None = None
        for key in ours:
            if key not in theirs:
                missing = missing or key
            elif missing is not None:
                detail = (
                    f"one member delivered this message before {_name(key)}; the other one delivered {_name(key)} alone"
                )
                self.broken("gap-free-prefix", detail, member=lacking, other=one, message=missing, view=view)


def _name(key: Key) -> str:
    return f"{key[0]}#{key[1]}"
