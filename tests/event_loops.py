"""Event loops that people run programs on: the tests that use one of these fixtures run on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import uvloop


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def either_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Once on the loop of the standard library, once on uvloop."""
    yield from _loops_of(uvloop.EventLoopPolicy() if request.param == "uvloop" else None)


@pytest.fixture(autouse=True)
def on_uvloop() -> Iterator[None]:
    """On uvloop alone."""
    yield from _loops_of(uvloop.EventLoopPolicy())


def _loops_of(policy: asyncio.AbstractEventLoopPolicy | None) -> Iterator[None]:
    asyncio.set_event_loop_policy(policy)
    yield
    asyncio.set_event_loop_policy(None)
