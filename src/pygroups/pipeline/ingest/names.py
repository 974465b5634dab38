"""Keys for names, each computed once, and the table of the name of every key."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pygroups.journal.rows import Named
from pygroups.pipeline.ingest.keys import history_key, key_of, life_key, view_key
from pygroups.pipeline.ingest.layout import NAMES

Key = int | None


class Keys:
    """The keys of one group; a name that is asked for stands in `rows` from then on."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._lives: dict[Any, Key] = {None: None}
        self._views: dict[Any, Key] = {None: None, (None, None): None}
        self._histories: dict[str | None, Key] = {None: None}
        self._rows: dict[tuple[str, int, str, int | None, str | None], None] = {}

    def address(self, address: str | None) -> Key:
        """The key of an incarnation by its address `name@incarnation`."""
        if address not in self._lives:
            self._lives[address] = self._told("life", life_key(self.group, str(address)), str(address))
        return self._lives[address]

    def life(self, pair: tuple[str | None, str | None] | None) -> Key:
        """The key of an incarnation by its name and incarnation."""
        if pair not in self._lives:
            assert pair is not None
            name = f"{pair[0] or ''}@{pair[1] or ''}"
            self._lives[pair] = self._told("life", key_of(self.group, *pair), name)
        return self._lives[pair]

    def view(self, view: tuple[int | None, str | None] | None) -> Key:
        """The key of a view by its number and creator."""
        if view not in self._views:
            assert view is not None
            number, creator = view
            if number is None:
                return None
            name = f"{number}:{creator or ''}"
            self._views[view] = self._told("view", view_key(self.group, number, creator), name, number, creator)
        return self._views[view]

    def history(self, history: str | None) -> Key:
        """The key of a history by its id."""
        if history not in self._histories:
            assert history is not None
            self._histories[history] = self._told("history", history_key(history), history)
        return self._histories[history]

    def _told(self, kind: str, key: int, name: str, number: int | None = None, creator: str | None = None) -> int:
        self._rows[kind, key, name, number, creator] = None
        return key

    def table(self) -> pa.Table:
        """The names of the keys, as the table `names`."""
        rows = [(self.group, *row) for row in self._rows]
        columns = list(zip(*rows, strict=True)) or [()] * len(NAMES)
        return pa.table([pa.array(column, kind) for column, kind in zip(columns, NAMES.types, strict=True)], NAMES)


def keys_of(column: Named, keys: Iterable[Key]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The key of each row of a column, from `keys` with one key for each name of the column, and a mask of the rows
    without a name."""
    told = list(keys)
    values = np.array([key or 0 for key in told], np.int64)
    nulls = np.array([key is None for key in told], np.bool_)
    return values[column.codes], nulls[column.codes]
