"""A member that is alone although its options speak of other machines says so: perhaps there is a second group."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from pathlib import Path

import pytest

from pygroups import Channel
from pygroups.channel.alone import alone
from pygroups.core.limits import SECOND
from pygroups.drivers.contacts import parse_contact
from pygroups.drivers.discovery.options import parse_discovery
from pygroups.testing import Group, run
from tests.channel.socket_group import until
from tests.channel.test_watchdog import Story, lines

HERE = "127.0.0.1:0"
FOLDER = "listens for other machines, and looks for members in a folder of this machine only"


@pytest.mark.parametrize(
    ("discovery", "bind", "reason"),
    [
        (None, HERE, None),
        ("dir:/shared", "[::1]:0", None),
        (None, "0.0.0.0:7000", FOLDER),
        ("dir:/shared", "10.0.0.5:7000", FOLDER),
        ("10.0.0.5:7000", "10.0.0.5:7000", None),  # the list is this process alone
        ("10.0.0.5:7000,10.0.0.6:7000", "10.0.0.5:7000", "the listed address does not belong to another member"),
        ("10.0.0.6:7000,b:7000", "10.0.0.5:7000", r"none of the listed .* another member \(10.0.0.6:7000, b:7000\)"),
        ("dns:orders.example:7000", "0.0.0.0:7000", "DNS name orders.example:7000 leads to no other member"),
        ("udp:239.1.2.3:7000", HERE, "no other member answers at the multicast address 239.1.2.3:7000"),
        (["dir:/shared", "dns:a:7000", "b:7000"], "0.0.0.0:7000", "listed address .*; the DNS name a:7000"),
    ],
)
def test_the_reason_of_a_warning(discovery: str | list[str] | None, bind: str, reason: str | None) -> None:
    found = alone(parse_discovery(discovery), parse_contact(bind), bind)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(reason, found)


def test_the_warning_comes_at_once_and_then_each_minute(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()

    def pass_by(seconds: int) -> int:
        caplog.clear()
        for _ in range(2 * seconds):
            story.time += SECOND // 2
            story.ring()
        return len(lines(caplog))

    assert pass_by(10) == 0
    story.alone = "alone"
    assert pass_by(1) == 1
    assert pass_by(58) == 0
    assert pass_by(121) == 2
    story.alone = None
    assert pass_by(100) == 0
    story.alone = "alone"
    assert pass_by(1) == 1


def test_members_that_are_alone_say_so_until_they_are_not(caplog: pytest.LogCaptureFixture) -> None:
    """In memory, discovery is by equal text: two lists give two groups, each of which warns; one list gives one."""

    async def story(group: Group) -> None:
        one, other = "10.0.0.5:7000,10.0.0.6:7000", "10.0.0.5:7000,10.0.0.7:7000"
        public = "0.0.0.0:7000"
        async with Channel("g", name="A", bind=public, insecure=True, discovery=one):
            async with Channel("g", name="B", bind=public, insecure=True, discovery=other):
                await asyncio.sleep(1)
                assert [line[:14] for line in lines(caplog)] == ["A in group 'g'", "B in group 'g'"]
                assert all("none of the listed addresses" in line for line in lines(caplog))
            caplog.clear()
            async with Channel("g", name="C", bind=public, insecure=True, discovery=one):
                await asyncio.sleep(300)
                assert lines(caplog) == []
            await asyncio.sleep(130)
            assert len(lines(caplog)) == 3

    run(story)


def test_on_real_sockets_a_wrong_list_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:  # bound, and nothing listens
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"

        async def story() -> None:
            async with Channel("g", discovery=place):
                await until(lambda: lines(caplog, logging.WARNING))

        asyncio.run(story())
    assert f"alone in its group: the listed address does not belong to another member ({place})" in lines(caplog)[0]
