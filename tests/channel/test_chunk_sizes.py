"""The chunks in which a member gives its state: over UDP they grow while few runs are lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pygroups.channel.log import Log
from pygroups.channel.state.states import States
from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.core.state_events import StateChunk, StateTaken, StateWanted
from pygroups.core.view import ViewId
from pygroups.drivers.transports import TCP, Transport

A, B = Address("A", "00"), Address("B", "01")
VIEW = ViewId(3, A)
UDP = Transport("udp")
SIZE = 32 << 20


class Network:
    """Takes the place of the member: each chunk arrives at once, and one of `lost` is requested again; 0: none."""

    def __init__(self, lost: int = 0) -> None:
        self.lost = lost
        self.chunks: list[int] = []
        self.states: States | None = None

    def losses(self) -> tuple[int, int]:
        sent = len(self.chunks)
        return sent, sent // self.lost if self.lost else 0

    def ask(self, event: core.Event) -> None:
        assert isinstance(event, StateChunk)
        assert self.states is not None
        self.chunks.append(len(event.data))
        self.states.on_taken(StateTaken(VIEW, B, len(self.chunks)))

    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None:
        pass


class App:
    async def get_state(self) -> bytes:
        return bytes(SIZE)

    async def set_state(self, data: bytes) -> None:
        raise NotImplementedError


def given(config: Config, lost: int = 0) -> list[int]:
    """The sizes of the chunks of a state of SIZE bytes."""
    network = Network(lost)

    async def main() -> None:
        later = asyncio.get_running_loop().call_later
        states = network.states = States(App(), cast(Any, network), config, later, lambda _: None, Log("A", "g"))
        assert await states.provide(states.want(StateWanted(VIEW, (B,), {}))) is None
        async with asyncio.timeout(60):
            await asyncio.gather(*states.tasks)

    asyncio.run(main())
    assert sum(network.chunks) == SIZE
    return network.chunks


def test_without_loss_a_state_takes_at_most_twice_the_chunks_of_tcp() -> None:
    over_udp, over_tcp = given(UDP.limits(Config())), given(TCP.limits(Config()))
    assert set(over_tcp[:-1]) == {Config().state_chunk}
    assert over_udp[0] < 2 * Config().datagram
    assert max(over_udp) == Config().state_chunk
    assert len(over_udp) <= 2 * len(over_tcp)


@pytest.mark.parametrize("lost", [50, 20])
def test_with_losses_a_chunk_stays_at_two_datagrams(lost: int) -> None:
    sizes = given(UDP.limits(Config()), lost)
    assert set(sizes[:-1]) == {sizes[0]}
    assert sizes[0] < 2 * Config().datagram


def test_a_smaller_chunk_of_the_program_is_kept() -> None:
    assert set(given(UDP.limits(Config(state_chunk=1_000)))[:-1]) == {1_000}
