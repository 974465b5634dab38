"""Which views are closed: every member has gone on to another view, or has ended.

A view closes by the records that were read, never by the clock of the stream: the same journals close the same views,
whenever they are read.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

GRACE_US: Final = 15_000_000
"""A member that others excluded may run on in its old view until it notices, after 6 s of silence, and its journal has
more records of this view.  It counts as ended if the others wrote this long behind its last record."""


@dataclass(frozen=True)
class Member:
    """An incarnation, as far as its journal was read.

    - whole: its journal has no hole and no damage; otherwise nothing is expected of the rest
    - last_us: the time of its last record
    - proven: a `stop` or a `quiet` record, or a mark of its crash, proves its end
    - open: nothing proves its end, not even a member that went on without it
    - unread: its journal has records behind those that were read
    """

    group: str
    address: str
    whole: bool
    last_us: int
    proven: bool
    open: bool
    unread: bool = False


@dataclass(frozen=True)
class Installed:
    """A view: its number, and the addresses of its members."""

    group: str
    number: int
    members: frozenset[str]


def closed_views(
    members: Mapping[int, Member], order: Mapping[int, Sequence[int]], views: Mapping[int, Installed]
) -> set[int]:
    """The closed ones of `views`; `order` has the views of each incarnation in the order of its journal."""
    ended = _ended(members)
    keys = {(member.group, member.address): key for key, member in members.items()}
    installers: dict[int, set[int]] = defaultdict(set)
    for key, installed in order.items():
        for view in installed:
            installers[view].add(key)

    def is_behind(key: int, view: int) -> bool:
        """Whether the member may still write records of the view."""
        if key in ended:
            return False
        mine = order.get(key, ())
        if key in installers[view]:
            return mine[-1] == view
        return not mine or views[mine[-1]].number < views[view].number

    def concerned(view: int) -> Iterable[int]:
        listed = (keys.get((views[view].group, name)) for name in views[view].members)
        return installers[view].union(key for key in listed if key is not None)

    return {view for view in views if not any(is_behind(key, view) for key in concerned(view))}


def _ended(members: Mapping[int, Member]) -> set[int]:
    """The incarnations that write nothing more, or whose further records are not trusted."""
    newest: dict[str, int] = {}
    running: set[str] = set()
    for member in members.values():
        newest[member.group] = max(newest.get(member.group, member.last_us), member.last_us)
        if member.open and member.whole:
            running.add(member.group)

    def has_ended(member: Member) -> bool:
        if not member.whole:
            return True
        if member.open or member.unread:
            return False
        late = newest[member.group] - member.last_us
        return member.proven or late >= GRACE_US or member.group not in running

    return {key for key, member in members.items() if has_ended(member)}
