"""Tells journals that have ended from journals that may go on: the copy of a running member's journal ends anywhere."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Life = Mapping[str, Any]


def open_lives(
    lives: Mapping[int, Life],
    views: Mapping[int, Sequence[int]],
    installed: Mapping[int, Iterable[int]],
    members: Mapping[int, Iterable[str]],
    crashed: Iterable[tuple[str, str]],
) -> set[int]:
    """The keys of the incarnations whose end nothing proves.

    An end is proven by a `stop` or a `quiet` record, by a mark that names the incarnation as killed or crashed, or by a
    member that was with it in its last view and went on without it, if it came back in no view.  `lives` have `group`,
    `address` and the `kinds` of their records; `views` has the views that each installed, in their order, `installed`
    the incarnations that installed a view, `members` the addresses in a view, `crashed` the group and address of each
    marked one.
    """
    marked = set(crashed)
    within = {view: frozenset(names) for view, names in members.items()}

    def excluded(address: str, last: int) -> bool:
        found = False
        for companion in installed.get(last, ()):
            order = views[companion]
            later = [address in within[view] for view in order[order.index(last) + 1 :]]
            if not all(later):
                if any(later[later.index(False) :]):
                    return False  # it was cut off for a while: its journal was copied before the merge
                found = True
        return found

    def ended(key: int, life: Life) -> bool:
        if not life["kinds"].isdisjoint(("stop", "quiet")) or (life["group"], life["address"]) in marked:
            return True
        return bool(views.get(key)) and excluded(life["address"], views[key][-1])

    return {key for key, life in lives.items() if not ended(key, life)}
