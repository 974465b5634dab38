"""The small examples in a group in memory: a chat, copies of a database, a job on one process."""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pygroups.testing import Group

chat: Any = importlib.import_module("examples.chat")
copies: Any = importlib.import_module("examples.sqlite_copies")
scheduler: Any = importlib.import_module("examples.scheduler")


class Person:
    """Someone in the chat: `say` types a line, `seen` is what the terminal shows."""

    def __init__(self, name: str) -> None:
        self.seen: list[str] = []
        self.typed: asyncio.Queue[str | None] = asyncio.Queue()
        self.here = asyncio.create_task(chat.chat(name, self.lines(), self.seen.append))

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self.typed.get()) is not None:
            yield line


async def test_a_later_member_of_the_chat_gets_the_last_lines(group: Group) -> None:
    ann = Person("ann")
    for number in range(30):
        ann.typed.put_nowait(f"line {number}")
    await asyncio.sleep(5)
    bob = Person("bob")
    await asyncio.sleep(5)
    bob.typed.put_nowait("hello")
    await asyncio.sleep(5)
    ann.typed.put_nowait(None)
    await ann.here
    await asyncio.sleep(5)
    assert ann.seen == ["* ann is here", *[f"ann: line {n}" for n in range(30)], "* bob is here", "bob: hello"]
    lines = [f"ann: line {n}" for n in range(10, 30)]
    assert sorted(bob.seen[:22]) == sorted([*lines, "* ann is here", "* bob is here"])
    assert bob.seen[22:] == ["bob: hello", "* ann has left"]
    bob.typed.put_nowait(None)
    await bob.here


async def test_all_copies_of_the_database_have_the_same_rows(group: Group, tmp_path: Path) -> None:
    async with copies.Copies(tmp_path / "a.db", name="a") as a:
        assert await a.write("INSERT INTO notes VALUES (?), ('2')", ["1"]) == 2
        async with copies.Copies(tmp_path / "b.db", name="b") as b:
            assert b.query("SELECT * FROM notes") == [("1",), ("2",)]
            await asyncio.gather(
                *(one.write("UPDATE notes SET note = note || ?", [str(n)]) for n, one in enumerate((a, b)))
            )
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await b.write("DELETE FROM nowhere")
            await group.settled()
            assert a.query("SELECT * FROM notes") == b.query("SELECT * FROM notes")
    with sqlite3.connect(tmp_path / "b.db") as file:
        assert len(file.execute("SELECT * FROM notes").fetchall()) == 2


async def test_the_job_of_a_crashed_process_runs_on_another_one(group: Group, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    for name in "abc":
        group.start(name, scheduler.schedule(name, store))
        await asyncio.sleep(1)
    await asyncio.sleep(10)
    group.crash("a")
    await asyncio.sleep(10)
    runs = [line.split() for line in store.read_text().splitlines()]
    assert [name for _, name in runs] == sorted(name for _, name in runs), "two processes ran the job by turns"
    assert {name for _, name in runs} == {"a", "b"} and len({token for token, _ in runs}) == 2
    with pytest.raises(scheduler.Refused):
        scheduler.store(store, int(runs[0][0]), "a")
    for name in "bc":
        group.crash(name)
