"""Each process has a SQLite database of its own, and all have the same rows: reads are local, writes are messages.

Start it in two shells or more, and type SQL:

    python examples/sqlite_copies.py one.db
    python examples/sqlite_copies.py two.db

    INSERT INTO notes VALUES ('milk')
    SELECT * FROM notes

A process that starts later gets the database of the others, whatever its file had.  The profile is `uniform`: no
process has a row that the others will not have, and without a majority a write waits.  A statement must do the same in
each process: no `random()`, no `datetime('now')`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pygroups

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (note TEXT)"


class Copy:
    """The database of this process.  All processes execute the same statements in the same order."""

    def __init__(self, file: str | Path) -> None:
        self.file = file
        self.database = sqlite3.connect(file, isolation_level=None)
        self.database.execute(SCHEMA)
        self.answers: dict[int, int | str] = {}  # to own statements by their number: the rows changed, or the error
        self.written = asyncio.Event()

    def execute(self, payload: bytes) -> int | str:
        """Execute one statement.  Its error is an answer like another: each process has the same."""
        statement, values = json.loads(payload)
        try:
            return self.database.execute(statement, values).rowcount
        except sqlite3.Error as error:
            return str(error)

    # -- the state of a process that joins, or joins again

    async def get_state(self) -> bytes:
        return self.database.serialize()

    async def set_state(self, data: bytes) -> None:
        with sqlite3.connect(":memory:") as given:
            given.deserialize(data)
            given.backup(self.database)


class Copies:
    """`async with Copies(file) as copies`: one of the copies."""

    def __init__(self, file: str | Path, **options: Any) -> None:
        self.copy = Copy(file)
        self.channel = pygroups.Channel("sqlite-copies", profile="uniform", rejoin=True, state=self.copy, **options)

    async def __aenter__(self) -> Copies:
        await self.channel.__aenter__()
        self.reading = asyncio.create_task(self.read())
        await self.channel.ready()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.channel.leave()
        await self.reading
        self.copy.database.close()

    async def read(self) -> None:
        async for event in self.channel:
            if isinstance(event, pygroups.Message):
                answer = self.copy.execute(event.payload)
                if event.sender == self.channel.address:
                    self.copy.answers[event.number] = answer

    def query(self, statement: str, values: list[Any] | None = None) -> list[Any]:
        """The rows, as this process has them now."""
        return self.copy.database.execute(statement, values or []).fetchall()

    async def write(self, statement: str, values: list[Any] | None = None) -> int:
        """Execute the statement in all copies, and return when it is in this one: the number of changed rows."""
        number = await self.channel.send(json.dumps([statement, values or []]).encode(), until="read")
        answer = self.copy.answers.pop(number)
        if isinstance(answer, str):
            raise sqlite3.OperationalError(answer)
        return answer


async def main(file: str) -> None:
    async with Copies(file, name=Path(file).stem, journal="sqlite-copies-journal") as copies:
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                if line.strip().lower().startswith("select"):
                    print(*copies.query(line), sep="\n", flush=True)
                elif line.strip():
                    print(await copies.write(line), "rows", flush=True)
            except sqlite3.Error as error:
                print(error, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
