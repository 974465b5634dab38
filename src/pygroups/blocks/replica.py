"""The replica: all machines of a process.  It changes by ordered commands and views, and all members have the same.

A machine is made by the first command for its name and forgotten when it is empty, so a process has the state of all
blocks, also of those that its own program does not use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE, Error

from .counter_machine import CounterMachine
from .dict_machine import DictMachine
from .machine import Machine, Tokens, decoder_of, encoded
from .news import News, Replaced, Ticket
from .permit_machine import PermitMachine
from .queue_machine import QueueMachine
from .wire import BlockKey, Command, Saved, SavedBlock, encode

VERSION: Final = 1
MACHINES: Final[dict[str, type[Machine]]] = {
    "dict": DictMachine,
    "lock": PermitMachine,
    "semaphore": PermitMachine,
    "leader": PermitMachine,
    "counter": CounterMachine,
    "queue": QueueMachine,
}
"""The kinds of replicated blocks."""

_ops: Final = {kind: decoder_of(machine.ops) for kind, machine in MACHINES.items()}
_states: Final = {kind: decoder_of(machine.state) for kind, machine in MACHINES.items()}
_saved: Final = msgspec.msgpack.Decoder(Saved)


class Replica:
    """The machines by kind and name, and the news that they have for this process."""

    def __init__(self) -> None:
        self.tokens = Tokens()
        self.machines: dict[BlockKey, Machine] = {}
        self.news: list[News] = []
        self.malformed = 0  # commands that no machine takes; all members drop the same ones

    def apply(self, sender: Address, command: Command) -> None:
        """Handle a command, in the order of the group."""
        kind = MACHINES.get(command.kind)
        if kind is None:
            self.malformed += 1
            return
        try:
            op = _ops[command.kind].decode(command.op)
        except UNDECODABLE:
            self.malformed += 1
            return
        key = (command.kind, command.name)
        machine = self.machines.get(key)
        if machine is None:
            machine = self.machines[key] = kind(key, self.tokens, self.news)
        machine.apply(Ticket(sender, command.call), op)
        if machine.is_empty:
            del self.machines[key]

    def on_view(self, members: tuple[Address, ...]) -> None:
        """Begin a view: whoever is not in it holds nothing and waits for nothing."""
        present = frozenset(members)
        for key, machine in list(self.machines.items()):
            machine.on_view(present)
            if machine.is_empty:
                del self.machines[key]

    def taken(self) -> list[News]:
        """The news since the last call."""
        news = self.news.copy()
        self.news.clear()
        return news

    def armed(self) -> Iterator[tuple[BlockKey, object, int, float]]:
        """All deadlines: the block, its key, the version of the key, and seconds."""
        for block, machine in self.machines.items():
            for key, version, seconds in machine.rearm():
                yield block, key, version, seconds

    # -- the state of a member that joins

    def saved(self) -> bytes:
        """The state as bytes; equal at all members at the same place of the order."""
        blocks = [SavedBlock(*key, encoded(machine.saved())) for key, machine in self.machines.items()]
        return encode(Saved(VERSION, self.tokens.last, blocks))

    def load(self, data: bytes) -> None:
        """Begin with a saved state.  Raises Error for one of another version, and changes nothing then."""
        tokens, machines = Tokens(), {}
        try:
            saved = _saved.decode(data)
            tokens.last = saved.token
            for block in saved.blocks:
                state: Any = _states[block.kind].decode(block.state)
                machine = MACHINES[block.kind]((block.kind, block.name), tokens, self.news)
                machine.load(state)
                machines[machine.key] = machine
        except (*UNDECODABLE, KeyError) as error:
            raise Error(f"the state of the group is not one of these blocks: {error}") from None
        if saved.version != VERSION:
            raise Error(f"the blocks of the group have version {saved.version}, and these have {VERSION}")
        before = list(self.machines)
        self.tokens, self.machines = tokens, machines
        self.news[:] = [Replaced(key) for key in dict.fromkeys([*before, *machines])]
