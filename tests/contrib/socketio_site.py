"""A Socket.IO server with one room, for the test of its workers: python -m uvicorn tests.contrib.socketio_site:app"""

from __future__ import annotations

import os
from typing import Any

import socketio

from pygroups.contrib.socketio import AsyncGroupManager

manager = AsyncGroupManager("site", discovery=f"dir:{os.environ['SITE_FOLDER']}")
server = socketio.AsyncServer(async_mode="asgi", client_manager=manager, transports=["websocket"], async_handlers=False)
app = socketio.ASGIApp(server)


@server.event
async def connect(sid: str, environ: dict[str, Any]) -> None:
    await server.emit("said", str(os.getpid()), to=sid)
    await server.enter_room(sid, "room")


@server.event
async def say(sid: str, text: str) -> None:
    await server.emit("said", text, room="room")
