"""Names are looked up in threads of their own: a silent name server stops no loop, no exit and no thread pool."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pygroups import Channel, UsageError
from pygroups.drivers import contacts
from pygroups.drivers.resolver import THREADS_MAX, Resolver
from tests.patience import patience

HERE = socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)


class SilentServer:
    """A name server that answers nothing before the end of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.real = socket.getaddrinfo
        self.asked: list[Any] = []
        self.threads: list[int] = []
        self.end = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self.looked_up)

    def looked_up(self, host: Any, *rest: Any, **named: Any) -> Any:
        if host in ("127.0.0.1", "localhost"):
            return self.real(host, *rest, **named)
        self.asked.append(host)
        self.threads.append(threading.get_ident())
        self.end.wait()
        return [HERE]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentServer]:
    server = SilentServer(monkeypatch)
    yield server
    server.end.set()
    for thread in threading.enumerate():  # the next test does not share a lookup of this one
        if thread.name.startswith("pygroups looks up"):
            thread.join()


class NoPool(asyncio.SelectorEventLoop):
    """A loop whose thread pool belongs to the program."""

    def run_in_executor(self, *_: Any) -> Any:  # type: ignore[override]
        raise AssertionError("pygroups uses the thread pool of the program")


async def gives_up(silent: SilentServer, channel: Channel) -> None:
    """Join, and give up as soon as a lookup is under way."""
    joining = asyncio.create_task(channel.__aenter__())
    async with asyncio.timeout(patience(30)):
        while not silent.asked:
            await asyncio.sleep(0.001)
    joining.cancel()
    await asyncio.gather(joining, return_exceptions=True)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("options", [
    {"discovery": "dns:group.example:7000"},
    {"discovery": "group.example:7000"},
    {"bind": "group.example:0", "insecure": True, "discovery": "127.0.0.1:7000"},
    {"bind": "0.0.0.0:0", "insecure": True, "discovery": "127.0.0.1:7000"},
])  # fmt: skip
def test_a_silent_name_server_stops_no_loop_no_exit_and_no_thread_pool(
    options: dict[str, Any], transport: str, silent: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contacts, "_routed", lambda far, family: "")  # no route: the machine's own name is looked up

    with asyncio.Runner(loop_factory=NoPool) as runner:
        runner.run(gives_up(silent, Channel("g", name="a", transport=transport, **options)))
    # The end of the loop has waited for no lookup: all of them are still under way.
    assert not silent.end.is_set()
    assert threading.get_ident() not in silent.threads
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("pygroups looks up"))


def test_lookups_of_one_name_share_a_thread_and_of_many_names_have_few(silent: SilentServer) -> None:
    resolver = Resolver()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        names = [f"host{number}.example" for number in range(THREADS_MAX + 8) for _ in range(2)]
        lookups = [asyncio.create_task(resolver.look_up(name, loop)) for name in names]
        async with asyncio.timeout(patience(30)):
            while len(silent.asked) < THREADS_MAX:
                await asyncio.sleep(0.001)
            lookups[0].cancel()
            silent.end.set()
            await asyncio.wait(lookups)
            while resolver.threads:
                await asyncio.sleep(0.001)
        assert all(lookup.result() == [(socket.AF_INET, "127.0.0.1")] for lookup in lookups[1:])
        assert sorted(silent.asked) == sorted(set(names)), "one lookup for each name"
        assert len(set(silent.threads)) <= THREADS_MAX
        assert not resolver.waiting and not resolver.queue

    asyncio.run(main())


def test_the_error_of_a_lookup_reaches_all_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        resolver = Resolver()
        found = await asyncio.gather(*[resolver.look_up("a.example", loop) for _ in range(3)], return_exceptions=True)
        assert [type(one) for one in found] == [socket.gaierror] * 3

    asyncio.run(main())


def test_without_a_thread_a_lookup_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)

    async def main() -> None:
        resolver = Resolver()
        for _ in range(2):
            with pytest.raises(OSError, match=r"a\.example cannot be looked up: can't start new thread"):
                await resolver.look_up("a.example", asyncio.get_running_loop())
        with pytest.raises(UsageError, match=r"cannot listen on a\.example:0: the name a\.example cannot be looked up"):
            await Channel("g", bind="a.example:0", insecure=True, discovery="127.0.0.1:7000").__aenter__()

    asyncio.run(main())
