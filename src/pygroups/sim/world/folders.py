"""The folder of the journals of one name: the records of former incarnations that a process finds there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from pygroups.core.address import Address
from pygroups.core.former import FormerLife
from pygroups.core.layer import Env, Record


class Folder:
    """The incarnations under one name, in the order of their starts.  `runs` returns whether the process of an
    incarnation runs."""

    def __init__(self, runs: Callable[[Address], bool]) -> None:
        self.runs = runs
        self.lives: dict[Address, FormerLife] = {}
        self.lost: dict[Address, None] = {}  # incarnations of which records are missing
        self.locked_by: dict[Address, Address] = {}  # per former incarnation, the last process that answered for it

    def opens(self, env: Env) -> None:
        """A process starts with this folder.  The process answers for the last incarnation that took part in a group,
        and whose lock is free.  Without such an incarnation the process still knows that the other incarnations have
        ended."""
        ended = [life for one, life in self.lives.items() if not self.runs(one) and not self._is_locked(one)]
        known = [life for life in ended if life.address not in self.lost and (life.view or life.bound)]
        if ended:
            last = known[-1] if known else FormerLife(ended[-1].address)
            env.former = msgspec.structs.replace(last, ended=tuple(life.address for life in ended))
            self.locked_by[last.address] = env.me
        self.lives[env.me] = FormerLife(env.me)

    def _is_locked(self, life: Address) -> bool:
        holder = self.locked_by.get(life)
        return holder is not None and self.runs(holder)

    def take(self, writer: Address, records: Sequence[Record], *, lost: bool) -> None:
        """The process `writer` has written these records, some of them perhaps for a former incarnation."""
        for kind, view, fields in records:
            life = fields.get("life", writer)
            if lost:
                self.lost[life] = None
            elif life in self.lives:
                self.lives[life].take(kind, view, fields)
