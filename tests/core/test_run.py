"""Runs do not change; bodies hold what was packed, and what holds something else is seen."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.run import Run, pack, payloads_of, unpack

A, B, C = (Address(name, "0" * 16) for name in "ABC")
FIELDS = Run.__struct_fields__


def fields(run: Run) -> dict[str, object]:
    return {name: getattr(run, name) for name in FIELDS}


def a_run() -> Run:
    return Run(A, B, ("low", "high"), C, 7, 0, 2, pack([b"x", b"y"]), A, 3)


def test_a_head_makes_a_new_run_over_the_same_body() -> None:
    run = a_run()
    before = fields(run)
    for made, changed in (
        (run.push("more"), {"heads": ("low", "high", "more")}),
        (run.pop(), {"heads": ("low",)}),
        (run.placed(B, 9), {"heads": ("low",), "stream": B, "seq": 9}),
        (run.readdressed(C, None), {"src": C, "dest": None}),
    ):
        assert fields(run) == before, "the original is untouched"
        assert made is not run
        assert made.body is run.body, "a body is never copied"
        assert fields(made) == before | changed


def test_nobody_changes_a_run() -> None:
    run = a_run()
    for name in FIELDS:
        with pytest.raises(AttributeError):
            setattr(run, name, None)


def test_runs_are_told_apart_by_who_they_are() -> None:
    run = a_run()
    assert run == run and run != a_run()
    assert len({run, a_run(), run}) == 2


def test_what_was_pushed_is_popped() -> None:
    run = a_run()
    assert fields(run.push("x").pop()) == fields(run)
    assert run.head == "high"
    assert Run(A, None).head is None


def test_next_is_the_number_after_the_last_payload() -> None:
    assert a_run().next == 9
    assert Run(A, None, ("word",)).next == 0


def test_a_run_says_what_it_is() -> None:
    assert repr(a_run()) == "Run(A@0000000000000000>B@0000000000000000 C@0000000000000000#7+2 ['low', 'high'])"
    assert repr(Run(A, None, ("word",))) == "Run(A@0000000000000000>* - ['word'])"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=40))
def test_payloads_come_out_as_they_went_in(payloads: list[bytes]) -> None:
    body = pack(payloads)
    assert unpack(body) == payloads
    assert payloads_of(Run(A, None, origin=A, first=1, count=len(payloads), body=body)) == payloads


@pytest.mark.parametrize("size", [0, 31, 32, 255, 256, 65_535, 65_536])
def test_sizes_where_lengths_grow(size: int) -> None:
    assert unpack(pack([bytes(size)])) == [bytes(size)]


@pytest.mark.parametrize("count", [15, 16, 65_535, 65_536])
def test_counts_where_lengths_grow(count: int) -> None:
    assert len(unpack(pack([b""] * count))) == count


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc0",
        b"x" * 40,
        pack([b"a", b"b"])[:-1],
        pack([b"a", b"b"]) + b"\0",
        pack([b"a"]),  # two are announced
        pack([b"a", b"b", b"c"]),
        msgspec.msgpack.encode(["a", "b"]),  # text is not binary
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode([b"a", None]),
        msgspec.msgpack.encode({b"a": b"b"}),
        b"\xdd\xff\xff\xff\xff",
        b"\x92\xc4\x01a\xc6\xff\xff\xff\xff",
        b"\x91" * 100_000,
    ],
)
def test_a_body_that_does_not_hold_what_it_says_is_seen(body: bytes) -> None:
    assert payloads_of(Run(A, None, origin=A, first=1, count=2, body=body)) is None
