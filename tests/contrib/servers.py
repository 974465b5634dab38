"""A web service of uvicorn workers at a port of this machine, one of which is killed under load, and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import websockets

from tests.patience import patience

ROOT = Path(__file__).parents[2]
SENT = 150  # messages of each client, at least


class Service:
    """`with Service(app, folder)` runs `app` in workers; `folder` gets their log, and is theirs as SITE_FOLDER.
    `options` are those of uvicorn, and `settings` go to the environment."""

    def __init__(self, app: str, folder: Path, workers: int = 3, *options: str, **settings: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path, "SITE_FOLDER": str(folder)} | settings
        place = ["--workers", str(workers), "--port", str(self.port)]
        command = [sys.executable, "-m", "uvicorn", app, *place, *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(patience(30))
        finally:
            self.process.kill()
            self.process.wait()
        if error is not None:
            error.add_note(self.log.read_text())


class WebSocket:
    """A websocket of texts.  The first text that comes is the process of its worker."""

    path = "/"

    @classmethod
    async def opened(cls, port: int) -> Self:
        made = cls()
        made.socket = await websockets.connect(f"ws://127.0.0.1:{port}{cls.path}", proxy=None)
        return made

    socket: websockets.ClientConnection

    async def send(self, text: str) -> None:
        await self.socket.send(text)

    async def texts(self) -> AsyncIterator[str]:
        async for text in self.socket:
            yield str(text)


class SocketIO(WebSocket):
    """The same over the protocol of Socket.IO: the texts are those of the event `said`."""

    path = "/socket.io/?EIO=4&transport=websocket"

    async def send(self, text: str) -> None:
        await self.socket.send("42" + json.dumps(["say", text]))

    async def texts(self) -> AsyncIterator[str]:
        async for text in super().texts():
            if text.startswith("0"):
                await self.socket.send("40")
            elif text == "2":
                await self.socket.send("3")
            elif text.startswith("42"):
                yield json.loads(text[2:])[1]


class Client:
    """A client in the room; `heard` is what came, `sent` how many texts it sent."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.texts = socket.texts()
        self.worker = 0
        self.name = str(random.getrandbits(32))
        self.sent = 0
        self.heard: list[str] = []

    async def meet(self) -> None:
        self.worker = int(await anext(self.texts))

    async def talk(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            await self.socket.send(f"{self.name} {self.sent}")
            self.sent += 1
            await asyncio.sleep(0.005)

    async def listen(self) -> None:
        async for text in self.texts:
            self.heard.append(text)

    def hears(self, other: Client) -> bool:
        return f"{other.name} hello" in self.heard

    def numbers(self, of: Client) -> list[int]:
        those = [text.split()[1] for text in self.heard if text.split()[0] == of.name]
        return [int(number) for number in those if number != "hello"]


async def clients(port: int, kind: type[WebSocket], workers: int = 3) -> list[Client]:
    """Two clients of each worker."""
    found: dict[int, list[Client]] = {}
    while len(found) < workers or any(len(those) < 2 for those in found.values()):
        try:
            client = Client(await kind.opened(port))
        except OSError:  # it is starting
            await asyncio.sleep(0.1)
            continue
        await client.meet()
        those = found.setdefault(client.worker, [])
        if len(those) < 2:
            those.append(client)
        else:
            await client.socket.socket.close()
    return [client for those in found.values() for client in those]


async def kill_under_load(port: int, kind: type[WebSocket]) -> tuple[list[Client], list[Client]]:
    """The clients of the killed worker, and those of the others, when these have heard all of each other."""
    those = await clients(port, kind)
    victim = those[0].worker
    lost, kept = [[one for one in those if (one.worker == victim) is is_lost] for is_lost in (True, False)]
    listening = [asyncio.create_task(one.listen()) for one in those]
    while not all(one.hears(other) for one in those for other in those):  # a worker joins with its first client
        for one in those:
            await one.socket.send(f"{one.name} hello")
        await asyncio.sleep(0.1)
    talking = [asyncio.create_task(one.talk(lambda: min(one.sent for one in kept) >= SENT)) for one in those]
    await _until(lambda: min(one.sent for one in those) > SENT // 3)
    os.kill(victim, signal.SIGKILL)
    await asyncio.gather(*talking, return_exceptions=True)
    with contextlib.suppress(TimeoutError):  # what has not come by then is missing
        async with asyncio.timeout(patience(5)):
            await _until(lambda: all(len(one.numbers(other)) >= other.sent for one in kept for other in kept))
    for one in those:
        await one.socket.socket.close()
    await asyncio.gather(*listening, return_exceptions=True)
    return lost, kept


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


def check_heard(lost: list[Client], kept: list[Client]) -> None:
    """The clients of the living workers have heard each other, and what the killed one had taken without a hole."""
    for one in kept:
        for other in kept:
            assert one.numbers(other) == [*range(other.sent)]
        for other in lost:
            assert one.numbers(other) == kept[0].numbers(other) == [*range(len(one.numbers(other)))]
    assert any(kept[0].numbers(other) for other in lost)
