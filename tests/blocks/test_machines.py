"""The machines alone: equal after the same commands, wherever a state was taken; hostile commands change nothing."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from pygroups import Address, Error
from pygroups.blocks import counter_machine, dict_machine, permit_machine, queue_machine
from pygroups.blocks.deadlines import AGAIN, STALE, Deadlines
from pygroups.blocks.news import Answer, Armed, Ticket
from pygroups.blocks.replica import MACHINES, Replica
from pygroups.blocks.wire import COMMAND, PREFIX, Command, command, opened

MEMBERS = [Address(name, "0") for name in "ABC"]


def drawn_op(chance: random.Random, kind: str) -> Any:
    key, value = chance.choice([b"x", b"y"]), chance.randbytes(1)
    if kind == "dict":
        return chance.choice(
            [
                dict_machine.Put([(key, value)], chance.choice([0.0, 5.0])),
                dict_machine.Swap(key, chance.choice([None, value]), chance.choice([None, value])),
                dict_machine.Drop([key]),
                dict_machine.Clear(),
                dict_machine.Due([(key, chance.randrange(50))]),
            ]
        )
    if kind == "counter":
        return chance.choice([counter_machine.Add(chance.randint(-2, 2)), counter_machine.Swap(0, 1)])
    if kind == "queue":
        call = chance.randrange(60)
        return chance.choice(
            [
                queue_machine.Offer([value], chance.choice([0, 2]), chance.randrange(100)),
                queue_machine.Take(),
                queue_machine.Done(call),
                queue_machine.Back(call, chance.choice([True, False])),
            ]
        )
    permits, call = (2 if kind == "semaphore" else 1), chance.randrange(60)
    return chance.choice(
        [
            permit_machine.Acquire(permits, chance.choice([0.0, 3.0]), chance.choice([True, False])),
            permit_machine.Release(call),
            permit_machine.Renew(call),
            permit_machine.Due([(Ticket(chance.choice(MEMBERS), call), chance.randrange(50))]),
        ]
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_replica_that_began_with_a_state_goes_on_as_the_others(seed: int) -> None:
    chance, old, kinds = random.Random(seed), Replica(), list(MACHINES)
    young: Replica | None = None
    for call in range(200):
        if call == 100:
            young = Replica()
            young.load(old.saved())
            old.taken(), young.taken()
        replicas = [old, young] if young is not None else [old]
        if chance.random() < 0.05:
            members = tuple(chance.sample(MEMBERS, 2))
            for replica in replicas:
                replica.on_view(members)
        else:
            kind = chance.choice(kinds)
            message = opened(command(call, (kind, "n"), drawn_op(chance, kind)))
            assert isinstance(message, Command)
            sender = chance.choice(MEMBERS)
            for replica in replicas:
                replica.apply(sender, message)
        if young is not None:
            assert old.saved() == young.saved()
            assert old.taken() == young.taken()
    assert not old.malformed


def test_a_permit_is_never_given_twice_and_tokens_grow() -> None:
    for seed in range(30):
        chance, replica, last = random.Random(seed), Replica(), 0
        for call in range(300):
            if chance.random() < 0.05:
                replica.on_view(tuple(chance.sample(MEMBERS, 2)))
            else:
                message = opened(command(call, ("lock", "n"), drawn_op(chance, "lock")))
                assert isinstance(message, Command)
                replica.apply(chance.choice(MEMBERS), message)
            machine = replica.machines.get(("lock", "n"))
            assert machine is None or len(machine.held) == 1  # type: ignore[attr-defined]
            for news in replica.taken():
                if isinstance(news, Answer) and type(news.value) is int:
                    assert news.value > last
                    last = news.value


def test_tokens_reach_the_time_of_a_request() -> None:
    replica = Replica()
    for at_us, token in [(1_000, 1_000), (500, 1_001), (2_000, 2_000)]:
        message = opened(command(1, ("lock", str(at_us)), permit_machine.Acquire(1, at_us=at_us)))
        assert isinstance(message, Command)
        replica.apply(MEMBERS[0], message)
        assert [news.value for news in replica.taken() if isinstance(news, Answer)] == [token]


@pytest.mark.parametrize("payload", [PREFIX, COMMAND, COMMAND + b"\x01", PREFIX + b"?abc", COMMAND + b"\x94\x01\xa1x"])
def test_a_malformed_message_is_none(payload: bytes) -> None:
    assert opened(payload) is None


@pytest.mark.parametrize(
    ("kind", "op"), [("dict", ["?"]), ("dict", ["p", 3]), ("what", ["p"]), ("lock", ["a", 0]), ("lock", ["a", 1, -1.0])]
)
def test_a_command_that_no_machine_takes_changes_nothing(kind: str, op: object) -> None:
    replica = Replica()
    message = opened(command(1, (kind, "n"), op))
    assert isinstance(message, Command)
    before = replica.saved()
    replica.apply(MEMBERS[0], message)
    assert (replica.saved(), replica.malformed, replica.taken()) == (before, 1, [])


def test_a_state_of_another_version_changes_nothing() -> None:
    replica = Replica()
    message = opened(command(1, ("counter", "n"), counter_machine.Add(1)))
    assert isinstance(message, Command)
    replica.apply(MEMBERS[0], message)
    state = replica.saved()
    for other in [b"", b"\xc1", msgspec.msgpack.encode((2, 0, [])), msgspec.msgpack.encode((1, 0, [("?", "n", 1)]))]:
        with pytest.raises(Error):
            replica.load(other)
        assert replica.saved() == state


def test_deadlines_of_keys_that_were_written_again_are_forgotten() -> None:
    replica, deadlines = Replica(), Deadlines()
    for number in range(5 * STALE):
        message = opened(command(1, ("dict", "d"), dict_machine.Put([(b"x", b"%d" % number)], 10.0)))
        assert isinstance(message, Command)
        replica.apply(MEMBERS[0], message)
        for news in replica.taken():
            if isinstance(news, Armed):
                deadlines.arm(float(number), news, replica)
        assert len(deadlines._heap) <= 2 * STALE
    assert deadlines.due(5 * STALE + 8, replica, 0) == {}
    (due,) = deadlines.due(5 * STALE + 9, replica, 0).values()
    assert [key for key, _ in due] == [b"x"]
    assert deadlines.next == 5 * STALE + 9 + AGAIN
    assert deadlines.due(5 * STALE + 9 + AGAIN, replica, 2) == {}  # the turn of rank 1
    assert deadlines.due(5 * STALE + 9 + 2 * AGAIN, replica, 2) == {("dict", "d"): due}
