"""Two groups of one name with different settings, over sockets of this machine: each logs the other one, and they never
merge."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from typing import Any

import pytest

from pygroups import Config
from pygroups.wire.frame import VERSION
from tests.channel.socket_group import until
from tests.channel.test_discovery import ANOTHER_VERSION, Processes, free_ports, played

APART = "is in another group of this name, and the two groups never merge: "


def lines(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """The warnings of the channel of `name` about other groups."""
    texts = [record.getMessage() for record in caplog.records if record.name == "pygroups.channel"]
    return [text for text in texts if APART in text and text.startswith(f"{name} in ")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "here", "there"),
    [
        ({"config": Config(window=1 << 19)}, "window=1048576", "window=524288"),
        ({"profile": "fifo"}, "profile=total", "profile=fifo"),
        ({"on_merge": "primary"}, "on_merge=keep", "on_merge=primary"),
    ],
    ids=["window", "profile", "on_merge"],
)
def test_groups_born_apart_log_the_difference_and_stay_apart(
    options: dict[str, Any], here: str, there: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A looks at both places and finds no process; B looks at its own place only, and so founds a group of its own."""

    async def story(processes: Processes) -> None:
        one, other = (f"127.0.0.1:{port}" for port in free_ports(2))
        a = await processes.join("A", discovery=f"{one},{other}", bind=one)
        b = await processes.join("B", discovery=other, bind=other, **options)
        await until(lambda: bool(lines(caplog, "A") and lines(caplog, "B")))
        c = await processes.join("C", discovery=one)
        await a.send(b"to A and C", until="stable")
        assert (a.view.members, b.view.members) == ((a.address, c.address), (b.address,))
        assert [line.split(APART)[1] for line in lines(caplog, "A")] == [f"this group has {here}, the other {there}"]
        assert [line.split(APART)[1] for line in lines(caplog, "B")] == [f"this group has {there}, the other {here}"]

    with caplog.at_level(logging.WARNING, "pygroups"):
        played(story)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_groups_with_other_wire_versions_log_the_versions(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    """The same with a process of another wire version, which no frame of this process reaches."""

    async def story(processes: Processes) -> None:
        one, other = (f"127.0.0.1:{port}" for port in free_ports(2))
        a = await processes.join("A", discovery=f"{one},{other}", bind=one, transport=transport)
        arguments = ("--name", "B", "--discovery", other, "--bind", other, "--transport", transport)
        b = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ANOTHER_VERSION, "--verbose", "join", "g", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            await until(lambda: bool(lines(caplog, "A")))
            assert b.stderr is not None
            there = ""
            while APART not in there:
                there = (await b.stderr.readline()).decode()
                assert there, "it ended"
        finally:
            b.kill()
            await b.wait()
        (line,) = lines(caplog, "A")
        for text in (line, there):
            versions = re.findall(r"(?:version|joiner) (\d+)", text)
            assert sorted(versions) == [str(VERSION), str(VERSION + 1)], text
        assert a.view.members == (a.address,)

    with caplog.at_level(logging.WARNING, "pygroups"):
        played(story)
