"""Tells journals that have ended from journals that may go on: the copy of a running member's journal ends anywhere."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Life = Mapping[str, Any]
NOBODY: Final[frozenset[str]] = frozenset()


def open_lives(
    lives: Mapping[int, Life],
    last_views: Mapping[int, int],
    installed: Mapping[int, Iterable[int]],
    members: Mapping[int, Iterable[str]],
    crashed: Iterable[tuple[str, str]],
) -> set[int]:
    """The keys of the incarnations whose end nothing proves.

    An end is proven by a `stop` or a `quiet` record, by a mark that names the incarnation as killed or crashed, or by a
    member that was with it in its last view and whose own last view does not contain it.  `lives` have `group`,
    `address` and the `kinds` of their records; `last_views` has the last view of each, `installed` the incarnations
    that installed a view, `members` the addresses in a view, `crashed` the group and address of each marked one.
    """
    marked = set(crashed)
    in_last = {life: frozenset(members[view]) for life, view in last_views.items()}

    def ended(key: int, life: Life) -> bool:
        if not life["kinds"].isdisjoint(("stop", "quiet")) or (life["group"], life["address"]) in marked:
            return True
        companions = installed.get(last_views.get(key, key), ())
        return any(life["address"] not in in_last[one] for one in companions if one != key)

    return {key for key, life in lives.items() if not ended(key, life)}
