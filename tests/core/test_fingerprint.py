"""The reason of a refusal names each field that differs, with both values."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from pygroups.core.fingerprint import difference, digest, fingerprint
from pygroups.core.layer import Env
from pygroups.core.limits import BODY_MAX, DETAIL_MAX, FINGERPRINT_MAX, LIMIT_MAX, TEXT_MAX, Config
from pygroups.core.merge_side import FUNCTION
from pygroups.drivers.hello import NO_GROUP
from pygroups.layers.gms.heads import Join, Refuse
from pygroups.layers.profiles import PROFILES, Profile, build_stack
from pygroups.wire.codec import Codec
from tests.wire.samples import A, B

TOTAL = fingerprint("total", "Sequencer/Flush", "run_bytes=65536 window=1048576")


@pytest.mark.parametrize(
    ("joiner", "says"),
    [
        (
            fingerprint("fifo", "Flush", "run_bytes=65536 window=1048576"),
            "the group has profile=total, the joiner profile=fifo",
        ),
        (
            fingerprint("total", "Sequencer/Flush", "run_bytes=65536 window=5"),
            "the group has window=1048576, the joiner window=5",
        ),
        (
            fingerprint("fifo", "Flush", "run_bytes=65536 window=5"),
            "the group has profile=total, the joiner profile=fifo; the group has window=1048576, the joiner window=5",
        ),
        (
            fingerprint("total", "Flush", "run_bytes=1 window=1048576"),
            "the group has the layers Sequencer, the joiner no further layer, in the same profile of another version "
            "of pygroups; the group has run_bytes=65536, the joiner run_bytes=1",
        ),
        (
            fingerprint("total", "Sequencer/Order/Cut", "run_bytes=65536 window=1048576"),
            "the group has the layers Flush, the joiner the layers Order/Cut, in the same profile of another version "
            "of pygroups",
        ),
        (
            fingerprint("total", "Flush/Sequencer", "run_bytes=65536 window=1048576"),
            "the group has layers=Sequencer/Flush, the joiner layers=Flush/Sequencer, in the same profile of another "
            "version of pygroups",
        ),
        (
            fingerprint("total", "Sequencer/Flush", "depth=2 window=1048576"),
            "the group has run_bytes=65536, the joiner no run_bytes; the group has no depth, the joiner depth=2",
        ),
        ("", f"the group is {TOTAL!r}, the joiner is ''"),
        ("total Sequencer/Flush ==", f"the group is {TOTAL!r}, the joiner is 'total Sequencer/Flush =='"),
        ("a b\nc d", f"the group is {TOTAL!r}, the joiner is 'a b\\nc d'"),
    ],
)
def test_the_difference_is_named(joiner: str, says: str) -> None:
    assert difference(TOTAL, joiner) == says


def test_the_subjects_can_be_two_groups() -> None:
    other = fingerprint("total", "Sequencer/Flush", "run_bytes=65536 window=5")
    expected = "this group has window=1048576, the other window=5"
    assert difference(TOTAL, other, "this group", "the other") == expected


def test_a_hash_is_a_number_of_the_wire_and_shows_each_difference() -> None:
    texts = [TOTAL, TOTAL + "0", "", fingerprint("fifo", "Flush", "run_bytes=65536 window=1048576")]
    hashes = [digest(text) for text in texts]
    assert len(set(hashes)) == len(texts)
    assert all(0 <= one < 1 << 62 for one in hashes)


def largest(profile: Profile, off: int) -> str:
    """The fingerprint with the largest limits, less `off`."""
    must_agree = ("payload_max", "window", "heartbeat_all", "heartbeat_neighbors")
    config = Config(run_bytes=BODY_MAX // 2 - off, **dict.fromkeys(must_agree, LIMIT_MAX - off))
    env = Env(A, 0, Random(0), config)
    env.on_merge = FUNCTION
    build_stack(profile, env, lambda heads: Codec("g", heads))
    return env.fingerprint


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_the_longest_fingerprint_and_a_reason_with_all_differences_fit_their_heads(profile: Profile) -> None:
    one, other = largest(profile, 0), largest(profile, 1)
    assert 2 * len(one) < FINGERPRINT_MAX, "there is room for more layers and limits"
    join = Join(B, "h", one)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(join), type=Join) == join
    refuse = Refuse("refused", difference(one, other))
    assert refuse.detail.count(";") == 4
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(refuse), type=Refuse) == refuse
    assert len(difference("x" * FINGERPRINT_MAX, one)) < DETAIL_MAX
    if "MEMBERSHIP" not in profile.services:
        assert len(NO_GROUP + one) <= TEXT_MAX, "it takes the place of the group's name in a hello"
