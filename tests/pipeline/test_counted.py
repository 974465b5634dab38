"""The count of messages before a delivery: window by window as one by one, and unknown where an older table did not
count."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pygroups.pipeline.ingest.counted import Counting

Row = tuple[int | None, int]  # view and count


def followed(counting: Counting, rows: list[Row]) -> list[int | None]:
    views = np.array([view or 0 for view, _ in rows], np.int64)
    nulls = np.array([view is None for view, _ in rows], np.bool_)
    values, unknown = counting.follow(views, nulls, np.array([count for _, count in rows], np.int64))
    return [None if nothing else value for value, nothing in zip(values.tolist(), unknown.tolist(), strict=True)]


def slowly(rows: list[Row]) -> list[int | None]:
    before, held, found = None, 0, list[int | None]()
    for view, count in rows:
        held = held if view == before else 0
        found.append(None if view is None else held)
        before, held = view, held + count
    return found


@pytest.mark.parametrize("seed", range(40))
def test_windows_are_counted_as_one(seed: int) -> None:
    draw = random.Random(seed)
    rows = [(draw.choice((None, 1, 1, 1, 2)), draw.randrange(4)) for _ in range(30)]
    counting, found, at = Counting(), list[int | None](), 0
    while at < len(rows):
        size = draw.randrange(1, 8)
        found += followed(counting, rows[at : at + size]) + followed(counting, [])
        at += size
    assert found == slowly(rows)


def test_a_view_that_an_older_table_began_is_not_counted() -> None:
    counting = Counting(None, None)
    assert followed(counting, [(1, 2)]) == [None]
    assert followed(counting, [(1, 2), (2, 5), (2, 1)]) == [None, 0, 5]
    assert followed(counting, [(2, 1)]) == [6]
    assert followed(Counting(None, None), [(None, 1), (1, 1), (1, 1)]) == [None, 0, 1]
