"""Gaps that name the members that delivered their messages, beside a slow way to find them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks, Missing, NewView
from pygroups.core.view import AgreedView, Lack, Subgroup, ViewId
from pygroups.layers.streams.gaps import (
    LACKS_MAX,
    MISSING_MAX,
    RANGE_BYTES,
    TOLD_BYTES,
    all_below,
    below,
    gaps_below,
    gaps_in,
    gaps_of,
    lacks_of,
    note,
    told,
)

A, B, C, X = (Address(name, "0" * 8) for name in "ABCX")
SIDE = (A, B, C)
ranges = st.tuples(st.integers(1, 30), st.integers(1, 10), st.lists(st.sampled_from(SIDE), min_size=1, unique=True))
lacks = st.lists(ranges.map(lambda one: Lack(one[0], one[0] + one[1], tuple(one[2]))), max_size=6)


@given(lacks, st.integers(1, 30), st.integers(1, 15))
def test_gaps_are_whole_and_name_those_that_lack_none_of_their_messages(
    given: list[Lack], low: int, count: int
) -> None:
    gaps = gaps_of(X, low, low + count, SIDE, given)
    assert [gap.first for gap in gaps] == [low, *[gap.next for gap in gaps[:-1]]] and gaps[-1].next == low + count
    assert all(one.subgroup != other.subgroup for one, other in pairwise(gaps))
    for gap in gaps:
        for number in range(gap.first, gap.next):
            lacking = {member for one in given if one.low <= number < one.high for member in one.members}
            assert gap.subgroup == tuple(member for member in SIDE if member not in lacking)


def test_ranges_that_meet_are_one_and_many_become_few() -> None:
    missing: Missing = {}
    note(missing, X, 1, 5)
    note(missing, X, 5, 7)
    assert missing == {X: ((1, 7),)}
    for number in range(MISSING_MAX):
        note(missing, X, 10 * (number + 1), 10 * (number + 1) + 3)
    assert missing[X][:2] == ((1, 13), (20, 23)) and len(missing[X]) == MISSING_MAX


def test_only_ranges_where_a_member_announces_a_gap_are_passed_on() -> None:
    missing: list[tuple[Address, Missing | None]] = [(A, {X: ((1, 5), (8, 12)), B: ((1, 4),)}), (C, {X: ((8, 12),)})]
    assert lacks_of(missing, {}) == {}
    assert lacks_of(missing, {X: (12, 14)}) == {}
    assert lacks_of(missing, {X: (10, 14)}) == {X: (Lack(10, 12, (A, C)),)}
    assert lacks_of(missing, {X: (3, 11)}) == {X: (Lack(3, 5, (A,)), Lack(8, 11, (A, C)))}


def test_too_many_ranges_of_an_origin_become_one() -> None:
    members = [Address(f"m{number}", "0" * 8) for number in range(LACKS_MAX + 1)]
    missing: list[tuple[Address, Missing | None]] = [
        (one, {X: ((number + 1, 500 + number),)}) for number, one in enumerate(members)
    ]
    assert lacks_of(missing, {X: (1, 900)}) == {X: (Lack(1, 500 + LACKS_MAX, tuple(members)),)}


def test_a_member_with_too_many_ranges_for_a_frame_is_named_in_no_gap() -> None:
    many = {Address(f"m{number}", "0" * 8): ((1, 5),) for number in range(TOLD_BYTES // RANGE_BYTES // 6 + 1)}
    few = dict(list(many.items())[: TOLD_BYTES // RANGE_BYTES // 6])
    assert told(few) is few and told(many) is None
    assert lacks_of([(A, None), (B, {})], {X: (3, 11), C: (1, 2)}) == {X: (Lack(3, 11, (A,)),), C: (Lack(1, 2, (A,)),)}


def test_where_the_ranges_of_all_members_are_too_many_no_gap_names_a_member() -> None:
    origins = {Address(f"m{number}", "0" * 8): (1, 5) for number in range(TOLD_BYTES // RANGE_BYTES // 6 + 1)}
    assert lacks_of([(A, None)], origins) is None
    view = AgreedView(ViewId(3, A), SIDE, ("a", "b", "c"))
    sides = (Subgroup(ViewId(1, A), (A,), {}), Subgroup(ViewId(2, B), (B, C), {}))
    merged = NewView(
        view, None, (A,), (), (), primary=True, starts=None, digest={X: (6, 1)}, subgroups=sides, lacks=None
    )
    assert gaps_in(merged, X, 4) == (Gap(X, 4, 2, ()),)
    merged.lacks = {X: (Lack(4, 5, (C,)),)}
    assert gaps_in(merged, X, 4) == (Gap(X, 4, 1, (B,)), Gap(X, 5, 1, (B, C)))


many_ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=MISSING_MAX).map(tuple)


@given(st.dictionaries(st.sampled_from(SIDE), many_ranges), st.dictionaries(st.sampled_from(SIDE), st.integers(1, 30)))
def test_what_another_member_says_about_its_state_is_below_the_marks_and_in_order(lacks: Missing, marks: Marks) -> None:
    """Ranges that are the wrong way round, meet, overlap or lie beyond a mark are of a peer with a bug."""
    found = below(marks, lacks)
    for origin, ranges in found.items():
        assert ranges and all(low < high for low, high in ranges)
        assert all(one[1] <= other[0] for one, other in pairwise(ranges))
        assert ranges[0][0] >= 1 and ranges[-1][1] <= marks[origin]
    in_order = {
        origin: ranges
        for origin, ranges in lacks.items()
        if ranges == tuple(sorted(ranges)) and all(a[1] <= b[0] for a, b in pairwise(ranges))
    }
    for origin, ranges in in_order.items():
        numbers = {number for low, high in ranges for number in range(max(low, 1), min(high, marks.get(origin, 1)))}
        assert {number for low, high in found.get(origin, ()) for number in range(low, high)} == numbers


def test_too_much_to_tell_means_everything_below_the_marks() -> None:
    assert below({A: 5, B: 1}, None) == all_below({A: 5, B: 1}) == {A: ((1, 5),)}
    assert gaps_below({A: ((1, 3), (4, 5))}) == [Gap(A, 1, 2, ()), Gap(A, 4, 1, ())]
