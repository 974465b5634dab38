"""The client managers of python-socketio: rooms, callbacks and emitters across servers, and a worker that is killed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import socketio

from pygroups import UsageError
from pygroups.contrib.socketio import AsyncGroupManager, GroupManager
from tests.contrib.servers import Service, SocketIO, check_heard, kill_under_load


class Server(socketio.AsyncServer):  # type: ignore[misc]
    """A server with clients that it has not: what would go to one is in `sent`."""

    def __init__(self, manager: AsyncGroupManager) -> None:
        super().__init__(client_manager=manager, async_mode="asgi")
        self.sent: asyncio.Queue[tuple[str, list[Any]]] = asyncio.Queue()
        self.ids: list[int | None] = []

    async def _send_packet(self, eio_sid: str, pkt: Any) -> None:
        self.ids.append(pkt.id)
        await self.sent.put((eio_sid, pkt.data))

    async def _send_eio_packet(self, eio_sid: str, eio_pkt: Any) -> None:
        await self._send_packet(eio_sid, socketio.packet.Packet(encoded_packet=eio_pkt.data))

    async def client(self, name: str) -> str:
        """A client of this server."""
        if not self.manager_initialized:
            self.manager_initialized = True
            self.manager.initialize()
        return str(await self.manager.connect(name, "/"))


async def two(folder: Path) -> tuple[Server, Server]:
    """Two servers that have heard of each other."""
    servers = [Server(AsyncGroupManager("t", discovery=f"dir:{folder}")) for _ in range(2)]
    for server in servers:
        await server.client("first of all")
        await server.manager._member.loop.awaited(server.manager._member._kept.member())
    return servers[0], servers[1]


async def close(*servers: Server) -> None:
    for server in servers:
        server.manager.thread.cancel()
        await server.manager._member.loop.awaited(server.manager._member._kept.leave())


def test_rooms_callbacks_and_disconnects_reach_the_other_server(tmp_path: Path) -> None:
    async def story() -> None:
        a, b = await two(tmp_path)
        here, there = await a.client("here"), await b.client("there")
        await a.enter_room(there, "room")  # by the server that does not have this client
        await a.enter_room(here, "room")
        await a.emit("news", {"n": 1}, room="room")
        assert await a.sent.get() == ("here", ["news", {"n": 1}])
        got = [await b.sent.get()]
        assert got == [("there", ["news", {"n": 1}])]
        answered = asyncio.Event()
        await a.emit("ask", "x", to=there, callback=lambda *answer: answered.set() if answer == ("yes", 1) else None)
        assert await b.sent.get() == ("there", ["ask", "x"])
        await b.manager.trigger_callback(there, b.ids[-1], ["yes", 1])
        await asyncio.wait_for(answered.wait(), 60)
        await a.leave_room(there, "room")
        await a.close_room("room")
        await a.emit("news", 2)
        assert await b.sent.get() == ("first of all", ["news", 2])
        await close(a, b)

    asyncio.run(story())


def test_a_process_that_is_no_server_emits(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(AsyncGroupManager("t", discovery=f"dir:{tmp_path}"))
        await server.client("c")
        await server.manager._member.loop.awaited(server.manager._member._kept.member())
        emitter = GroupManager("t", write_only=True, discovery=f"dir:{tmp_path}")
        thread = threading.Thread(target=emitter.emit, args=("news", 1))
        thread.start()
        assert await server.sent.get() == ("c", ["news", 1])
        thread.join()
        other = AsyncGroupManager("t", write_only=True, discovery=f"dir:{tmp_path}")
        await other.emit("news", 2)
        assert await server.sent.get() == ("c", ["news", 2])
        await close(server)
        for manager in (emitter, other):
            manager._member._kept.end()

    asyncio.run(story())


def test_a_server_with_threads_hears_the_others(tmp_path: Path) -> None:
    heard = threading.Event()
    manager = GroupManager("t", discovery=f"dir:{tmp_path}")
    server = socketio.Server(client_manager=manager, async_mode="threading")
    server._send_packet = lambda eio_sid, pkt: heard.set() if pkt.data == ["news", 1] else None
    server._send_eio_packet = lambda eio_sid, pkt: heard.set() if '["news",1]' in pkt.encode() else None
    server.manager_initialized = True
    manager.initialize()
    manager.connect("c", "/")
    while manager._member._heard is None:
        heard.wait(0.01)
    emitter = GroupManager("t", write_only=True, discovery=f"dir:{tmp_path}")
    emitter.emit("news", 1)
    assert heard.wait(60)
    emitter._member._kept.end()


def test_wrong_options_are_refused_when_the_manager_is_made() -> None:
    with pytest.raises(UsageError, match="has no option disco"):
        AsyncGroupManager("g", disco="dir:/x")


@pytest.mark.slow
def test_the_clients_of_other_workers_miss_nothing_when_one_is_killed(tmp_path: Path) -> None:
    with Service("tests.contrib.socketio_site:app", tmp_path) as service:
        check_heard(*asyncio.run(kill_under_load(service.port, SocketIO)))
