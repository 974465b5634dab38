"""A Django site with one chat room, for the test of its workers: python -m uvicorn tests.contrib.channels_site:app"""

from __future__ import annotations

import os
from typing import Any

import django
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter
from django.conf import settings

settings.configure(
    CHANNEL_LAYERS={
        "default": {
            "BACKEND": "pygroups.contrib.channels.GroupLayer",
            # A large capacity: what is asked is which messages the layer loses, and not how fast a client reads.
            "CONFIG": {"group": "site", "discovery": f"dir:{os.environ['SITE_FOLDER']}", "capacity": 100_000},
        }
    }
)
django.setup()


class Room(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Says its process first; then each text goes to all who are in the room."""

    groups = ("room",)

    async def connect(self) -> None:
        await self.accept()
        await self.send(str(os.getpid()))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.channel_layer.group_send("room", {"type": "said", "text": text_data})

    async def said(self, event: dict[str, Any]) -> None:
        await self.send(event["text"])


app = ProtocolTypeRouter({"websocket": Room.as_asgi()})
