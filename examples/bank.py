"""A bank of several processes.  Each process has all accounts in memory, and no crash and no cut network ever loses
money or makes some: profile `uniform`.

Start each process in a shell of its own, and close the bank with Ctrl-C in any of them:

    python examples/bank.py A --expect 3
    python examples/bank.py B --expect 3
    python examples/bank.py C --expect 3

End a process with `kill -9` and start it again: it gets the accounts from the others.  If two of the three are killed,
the last one is blocked until a killed one is back.  `examples/bank_faults.py` does all of that, for some minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
from pathlib import Path

import pygroups

CLOSE = b"close"
CUSTOMERS = [f"customer-{number}" for number in range(20)]


class Bank:
    """The accounts.  All processes handle the same messages in the same order, so all have the same accounts."""

    def __init__(self) -> None:
        self.accounts = dict.fromkeys(CUSTOMERS, 1_000)
        self.handled: dict[str, int] = {}  # by teller, the number of its last transfer
        self.count = 0  # of all transfers
        self.closed = False

    def handle(self, payload: bytes) -> str | None:
        """Make one transfer.  Returns a receipt, or None for a message that changes nothing.

        Nothing but the message and the accounts may decide here: no clock, no random number, no file.
        """
        if self.closed or payload == CLOSE:
            self.closed = True
            return None
        teller, number, source, target, amount = json.loads(payload)
        if number <= self.handled.get(teller, 0):
            return None  # the teller did not know that its first copy had arrived
        self.handled[teller] = number
        self.count += 1
        if self.accounts[source] < amount:
            return f"transfer {self.count}: {teller} moves nothing, {source} has less than {amount}"
        self.accounts[source] -= amount
        self.accounts[target] += amount
        return f"transfer {self.count}: {teller} moves {amount} from {source} to {target}"

    # -- the state of a process that joins, or joins again

    async def get_state(self) -> bytes:
        return json.dumps(vars(self)).encode()

    async def set_state(self, data: bytes) -> None:
        vars(self).update(json.loads(data))
        print(f"got the accounts after transfer {self.count}", flush=True)


async def teller(channel: pygroups.Channel, bank: Bank, name: str, pause: float) -> None:
    """Move money between random customers, again and again."""
    await channel.ready()  # the accounts are here
    while True:
        await asyncio.sleep(pause)
        source, target = random.sample(CUSTOMERS, 2)
        transfer = [name, bank.handled.get(name, 0) + 1, source, target, random.randint(1, 200)]
        try:
            await channel.send(json.dumps(transfer).encode(), until="read", timeout=10)
        except (pygroups.NotSent, pygroups.Unknown):
            pass  # it was made, or will be, or never: a second transfer of the same number changes nothing
        except pygroups.ChannelClosed:
            return


async def serve(channel: pygroups.Channel, bank: Bank) -> None:
    """Handle all events, until the bank is closed."""
    async for event in channel:
        match event:
            case pygroups.Message(payload=payload):
                receipt = bank.handle(payload)
                if receipt is not None:
                    print(receipt, flush=True)
            case pygroups.View(id=view, members=members):
                print(f"view {view.number}:", *[member.name for member in members], flush=True)
            case pygroups.Blocked(reason=reason):
                print(f"blocked: {reason}", flush=True)
            case pygroups.Unblocked():
                print("unblocked", flush=True)
            case pygroups.Left(reason="excluded", unknown=numbers):
                print(f"the others went on without this process, {len(numbers)} transfers unknown", flush=True)
        if bank.closed:  # each process closes behind the same transfer
            return


async def main(options: argparse.Namespace) -> None:
    bank = Bank()
    channel = pygroups.Channel(
        "bank",
        profile="uniform",
        name=options.name,
        expect=options.expect,  # the first view needs more than half of so many processes
        discovery=f"dir:{options.folder / 'group'}",
        journal=options.folder / "journal",  # a process that starts again answers for its former life
        rejoin=True,
        state=bank,
        bind=options.bind,
        insecure=options.insecure,
        config=pygroups.Config(
            heartbeat=options.timeout / 5, heartbeat_timeout=options.timeout, verify_timeout=options.timeout / 5
        ),
    )
    async with channel:
        close = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, close.set)

        async def close_the_bank() -> None:
            await close.wait()
            await channel.send(CLOSE)

        others = [asyncio.create_task(close_the_bank())]
        others.append(asyncio.create_task(teller(channel, bank, options.name, options.pause)))
        await serve(channel, bank)
        for task in others:
            task.cancel()
    print(f"closed after transfer {bank.count}; all accounts have {sum(bank.accounts.values())}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="the name of this process, also when it starts again")
    parser.add_argument("--expect", type=int, required=True, help="the number of all processes")
    parser.add_argument("--folder", type=Path, default=Path("bank-out"), help="the same for all processes")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two transfers")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds of silence that make a process suspect")
    parser.add_argument("--bind", default="127.0.0.1:0", help="the address to listen on")
    parser.add_argument("--insecure", action="store_true", help="allow an address that other machines reach")
    asyncio.run(main(parser.parse_args()))
