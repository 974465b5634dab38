"""The example of profile `uniform`: processes that are killed, stopped and cut off; and its program in memory."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pygroups import Channel
from pygroups.testing import Group, run
from tests.patience import patience

ROOT = Path(__file__).parents[2]


def bank_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bank", ROOT / "examples" / "bank.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bank = bank_module()


def played(*options: str, within: float) -> str:
    """What the driver of the faults printed."""
    command = [sys.executable, str(ROOT / "examples" / "bank_faults.py"), *options, "--within", str(within)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_survived(said: str) -> None:
    assert re.search(r"survived: [1-9]\d* kills", said), said
    assert re.search(r"one history of [1-9]\d* transfers in [4-9]\d* processes|in [1-9]\d+ processes", said), said
    assert "accounts of each process have 20000, as at the start" in said, said


@pytest.mark.slow
def test_killed_and_stopped_processes_have_one_history_and_the_right_sum() -> None:
    """At least one fault more than the first kill, however busy the machine is."""
    assert_survived(played("--seconds", "8", "--seed", "3", "--timeout", "2", "--no-cuts", within=patience(60)))


@pytest.mark.long
def test_processes_on_hosts_of_their_own_are_cut_off_too() -> None:
    said = played("--seconds", "60", "--seed", "2", within=patience(60))
    assert_survived(said)
    assert re.search(r"[1-9]\d* cuts", said), said


# -- the program, in memory


class Process:
    """The program without its command line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bank = bank.Bank()

    async def live(self, folder: Path) -> None:
        options: dict[str, Any] = {"profile": "uniform", "expect": 3, "journal": folder, "rejoin": True}
        async with Channel("bank", name=self.name, state=self.bank, **options) as channel:
            telling = asyncio.create_task(bank.teller(channel, self.bank, self.name, 0.2))
            await bank.serve(channel, self.bank)
            telling.cancel()


@pytest.mark.slow
def test_the_bank_survives_two_crashes_of_three_and_a_cut_in_memory(tmp_path: Path) -> None:
    random.seed(7)

    async def story(group: Group) -> None:
        processes = {name: Process(name) for name in "ABC"}
        for name, process in processes.items():
            group.start(name, process.live(tmp_path))
        await asyncio.sleep(2)
        group.partition(["C"])
        await asyncio.sleep(10)
        counts = [processes[name].bank.count for name in "ABC"]
        assert min(counts[:2]) > counts[2]
        group.heal()
        await asyncio.sleep(10)
        assert group.views() == [("A", "B", "C")]
        group.crash("A", "B")
        await asyncio.sleep(10)
        blocked = processes["C"].bank.count
        for name in "AB":
            processes[name] = Process(name)
            group.start(name, processes[name].live(tmp_path))
        await asyncio.sleep(10)
        assert processes["C"].bank.count > blocked > counts[0]
        async with Channel("bank", name="clerk", profile="uniform", expect=3, events="none") as clerk:
            await clerk.send(bank.CLOSE)
        await asyncio.sleep(10)
        banks = [process.bank for process in processes.values()]
        assert all(vars(one) == vars(banks[0]) for one in banks)
        assert banks[0].closed
        assert sum(banks[0].accounts.values()) == 20_000

    run(story)


def test_a_transfer_that_comes_twice_or_after_the_end_changes_nothing() -> None:
    one = bank.Bank()
    transfer = b'["A", 1, "customer-1", "customer-2", 300]'
    assert one.handle(transfer) == "transfer 1: A moves 300 from customer-1 to customer-2"
    assert one.handle(transfer) is None
    assert one.handle(b'["B", 1, "customer-1", "customer-2", 800]') == (
        "transfer 2: B moves nothing, customer-1 has less than 800"
    )
    assert one.handle(bank.CLOSE) is None
    assert one.handle(b'["A", 2, "customer-1", "customer-2", 1]') is None
    assert (one.count, one.accounts["customer-2"], sum(one.accounts.values())) == (2, 1_300, 20_000)
