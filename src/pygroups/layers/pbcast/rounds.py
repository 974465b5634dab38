"""The gossips that a member has got: each is handled once, and sent on once."""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView, ViewId

VIEWS_MAX: Final = 8  # earlier views of which gossips are understood


class Named:
    """A view whose ranks this member understands."""

    __slots__ = ("everyone", "here", "members", "rank", "size")

    def __init__(self, members: tuple[Address, ...], me: Address) -> None:
        self.members = members
        self.size = len(members)
        self.rank = members.index(me)
        self.everyone = self.here = (1 << self.size) - 1  # bit sets of the ranks: all, and those in the present view


class Entry:
    """A gossip that this member has got."""

    __slots__ = ("digest", "lacking")

    def __init__(self, digest: dict[Address, int], lacking: int) -> None:
        self.digest = digest
        self.lacking = lacking  # a bit for each rank


class Cache:
    """The last gossips, within a limit.  The oldest leave first."""

    __slots__ = ("entries", "limit", "views")

    tables: ClassVar[Tables] = {
        "entries": lambda config, members: config.gossip_cache,
        "entries[].digest": "fixed",
        "views": "fixed",
        "views[].members": "members_max",
    }

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.entries: dict[tuple[Address, int], Entry] = {}  # by gossiper and number
        self.views: dict[ViewId, Named] = {}  # the last views, in which ranks are understood

    def installed(self, view: AgreedView, me: Address) -> None:
        """A new view: gossips may still name an earlier one."""
        if len(self.views) >= VIEWS_MAX:
            del self.views[next(iter(self.views))]
        here = dict.fromkeys(view.members)
        for named in self.views.values():
            named.here = sum([1 << rank for rank, member in enumerate(named.members) if member in here])
        self.views[view.id] = Named(view.members, me)

    def find(self, gossiper: Address, number: int) -> Entry | None:
        """The gossip, if this member has got it before."""
        return self.entries.get((gossiper, number))

    def add(self, gossiper: Address, number: int, entry: Entry) -> None:
        """Remember a gossip."""
        self.entries[gossiper, number] = entry
        if len(self.entries) > self.limit:
            del self.entries[next(iter(self.entries))]
