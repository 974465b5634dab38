"""The table of docs/layers/senders.md: no head changes more than its row says, and each head has a row."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, pack
from pygroups.core.view import Ballot
from pygroups.layers.gms.decisions.attempt import Attempt, Stage
from pygroups.layers.gms.heads import OTHER_SETTINGS, Accept, CollectAck, Low, Refuse
from pygroups.layers.gms.layer import Gms
from pygroups.layers.gms.leader.view_change import ViewChange
from pygroups.layers.profiles import PROFILES
from pygroups.layers.total import Bcast
from tests.wire.group import Group, Process
from tests.wire.impostors import Impostors
from tests.wire.senders import (
    ANYBODY,
    MEMBER,
    NOBODY,
    PHASES,
    PLACES,
    Case,
    Rows,
    changes,
    connected,
    heads_of,
    named,
    table,
)

PROFILES_OF_THE_TABLE = ("total", "uniform", "total1999", "gossip")
RARE = {"gms.Refuse", "gms.Expel", "gms.ViewReq", "gms.Low", "gms.Fetches", "sequencer.Again"}
"""Heads that an honest group seldom sends."""


def above(found: dict[str, dict[str, str]], allowed: Rows) -> list[str]:
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
@pytest.mark.parametrize("profile", ["total", "gossip"])
def test_a_drawn_head_of_a_sender_without_the_right_changes_nothing(profile: str) -> None:
    assert above(changes(profile, range(2, 3), table()), table()) == []


@pytest.mark.parametrize("profile", PROFILES_OF_THE_TABLE)
def test_nobody_believes_a_process_that_says_what_another_one_may_say(profile: str) -> None:
    said = Impostors(profile, table(), seed=1, tries=2)
    said.play()
    assert said.believed == [] and said.uncounted == {}
    assert len({head for head, _, _ in said.tried}) >= (8 if profile == "gossip" else 15)
    tried = {head for head, phase, _ in said.tried if phase == PHASES[0]}
    assert tried >= RARE.intersection(map(named, heads_of(profile)))
    assert ("merge2.MergeRsp" in said.sent) == (profile != "uniform"), "a cut makes two sides"
    left = list(said.group.processes.values())
    assert len(left) == 2 and left[0].env.view == left[1].env.view is not None
    assert [process.delivered[-1].run.body for process in left] == [left[0].delivered[-1].run.body] * 2


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES_OF_THE_TABLE)
def test_nobody_believes_a_process_in_many_groups(profile: str) -> None:
    for seed in range(2, 60):
        said = Impostors(profile, table(), seed, tries=6)
        said.play()
        assert said.believed == [] and said.uncounted == {}, seed


def test_nobody_outside_says_where_the_order_of_a_view_begins() -> None:
    """A member that believed it refused the broadcasts of the sequencer afterwards."""
    case = Case("total1999", "in a change", 1, ANYBODY, seed=8)
    view = case.receiver.env.view
    assert view is not None
    order = Run(case.sender, case.receiver.address, (Bcast(view, 19, 19),), case.sender, 1, 0, 1, pack([b"forged"]))
    assert not case.changed_by([connected(order, ANYBODY, 1)])


@pytest.mark.parametrize("profile", PROFILES_OF_THE_TABLE)
@pytest.mark.parametrize("reason", ["name taken", OTHER_SETTINGS])
def test_nobody_that_was_not_asked_refuses_a_joiner(profile: str, reason: str) -> None:
    """A joiner that found nobody ended its join by it."""
    case = Case(profile, "joining", 3, ANYBODY, seed=1)
    refusal = Run(case.sender, case.receiver.address, (Refuse(reason, "you may not"),))
    assert not case.changed_by([connected(refusal, ANYBODY, 1)])
    assert case.receiver.env.counters["drop refusal of no request"] == 1


def test_a_member_that_was_not_asked_does_not_end_a_view_change() -> None:
    """A member that the leader left out of its attempt could end each attempt: it is in the view, and may say so."""
    stages: list[Stage] = []

    def tap(_: Address, receiver: Process, frame: bytes) -> list[bytes]:
        (gms,) = (layer for layer in receiver.stack.layers if isinstance(layer, Gms))
        attempt = gms.leading.change.attempt
        if lost and attempt is not None and attempt.stage is Stage.COLLECT:
            low = Low(attempt.ballot, Ballot(attempt.ballot.number + 1, lost[0]))
            gms.up(Run(lost[0], receiver.address, (low,)))
            stages.append(attempt.stage)
        return [frame]

    lost: list[Address] = []
    group = Group("ABC", tap=tap)
    last = list(group.processes.values())[-1]
    lost.append(last.address)
    group.lose(last)
    group.run(SECOND)
    assert set(stages) == {Stage.COLLECT}


def test_a_layer_that_believes_an_impostor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Attempt.on_accept

    def careless(self: Attempt, src: Address, head: Accept, now: int) -> object:
        self.asked = (*self.asked, src)
        return before(self, src, head, now)

    monkeypatch.setattr(Attempt, "on_accept", careless)
    said = Impostors("total", table(), seed=1, tries=2)
    said.play()
    assert "gms.Accept, in a view: anybody" in said.believed


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES_OF_THE_TABLE)
def test_no_head_of_many_changes_more_than_its_row_says(profile: str) -> None:
    assert above(changes(profile, range(1, 40), table()), table()) == []


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
    assert set(PROFILES) == {*PROFILES_OF_THE_TABLE, "fifo", "uniform-fifo", "unicast"}
