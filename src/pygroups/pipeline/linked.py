"""Finds the incarnations that belong together: views link them, directly or through other incarnations, at any distance
in time."""

from collections.abc import Iterable, Sequence
from typing import Final

Node = tuple[str, str]  # group and address
_NOBODY: Final[tuple[str, ...]] = ()


def linked_of(views: Iterable[tuple[str, str, Sequence[str] | None]]) -> dict[Node, int]:
    """From views as (group, address of the installing member, members): a number for each incarnation in these lists.

    The number is the same for all incarnations that views link within a group: two uses of one folder that share no
    member are judged apart.  The time is linear in the number of names in the distinct lists of members.
    """
    leader: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        leader.setdefault(node, node)
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    seen: set[tuple[str, tuple[str, ...]]] = set()
    for group, address, members in views:
        names = tuple(members or _NOBODY)
        mine = find((group, address))
        if (group, names) in seen:
            others: tuple[str, ...] = names[:1]
        else:
            seen.add((group, names))
            others = names
        for name in others:
            theirs = find((group, name))
            low, high = sorted((mine, theirs))
            leader[high] = mine = low
    numbers: dict[Node, int] = {}
    return {node: numbers.setdefault(find(node), len(numbers)) for node in sorted(leader)}
