"""The table of docs/layers/senders.md: no head changes more than its row says, and each head has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pygroups.layers.gms.heads import CollectAck
from pygroups.layers.gms.leader.view_change import ViewChange
from pygroups.layers.profiles import PROFILES
from tests.wire.senders import ANYBODY, MEMBER, NOBODY, PHASES, PLACES, changes, heads_of, named

NOTE = Path(__file__).parents[2] / "docs" / "layers" / "senders.md"
PROFILES_OF_THE_TABLE = ("total", "uniform", "total1999")
ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \| (\w+) \| (\w+) \| (.+) \|$", re.MULTILINE)


def table() -> dict[str, tuple[str, ...]]:
    """The rows of the note: for each head the senders by phase, and the reason of "anybody"."""
    return {head: row for head, *row in ROW.findall(NOTE.read_text())}


def above(found: dict[str, dict[str, str]], allowed: dict[str, tuple[str, ...]]) -> list[str]:
    """Heads that changed more than their rows say."""
    return [
        f"{head}, {phase}: {sender} changed something, and only {most} may"
        for head, senders in found.items()
        for (phase, sender), most in zip(senders.items(), allowed[head], strict=False)
        if PLACES.index(sender) > PLACES.index(most)
    ]


def test_each_head_has_a_row_and_each_row_a_head() -> None:
    heads = {named(head) for name in (*PROFILES_OF_THE_TABLE, "uniform-fifo", "fifo") for head in heads_of(name)}
    assert heads == set(table())
    assert len(PHASES) == 3
    for head, (*senders, reason) in table().items():
        assert set(senders) <= set(PLACES)
        assert (ANYBODY in senders) == (reason != "-") or reason == "answered, and no more", head


@pytest.mark.slow
def test_a_head_of_a_sender_without_the_right_changes_nothing() -> None:
    assert above(changes("total", range(2, 3)), table()) == []


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES_OF_THE_TABLE)
def test_no_head_of_many_changes_more_than_its_row_says(profile: str) -> None:
    assert above(changes(profile, range(1, 40)), table()) == []


def test_a_layer_that_believes_a_stranger_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: ViewChange, src: object, head: CollectAck) -> None:
        self.failures += len(head.held) + 1

    monkeypatch.setattr(ViewChange, "on_collect_ack", careless)
    monkeypatch.setattr("tests.wire.senders.heads_of", lambda _: [CollectAck])
    found = changes("total", range(2, 3))
    assert found == {
        "gms.CollectAck": {"in a view": ANYBODY, "in a change": ANYBODY, "joining": found["gms.CollectAck"]["joining"]}
    }
    assert above(found, {"gms.CollectAck": (MEMBER, ANYBODY, ANYBODY)}) != []
    assert above(found, {"gms.CollectAck": (NOBODY, ANYBODY, ANYBODY)}) != []


def test_the_profiles_are_those_of_the_product() -> None:
    assert set(PROFILES) == {*PROFILES_OF_THE_TABLE, "fifo", "uniform-fifo", "gossip", "unicast"}
