"""The unix socket of a member: its mode, its limits, its end, and callers that are no command."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.events import Event, Vouched, VouchedFor
from pygroups.drivers import local_commands, local_socket
from pygroups.drivers.discovery import options as discovery_options
from pygroups.drivers.local_commands import COMMAND_MAX, CommandAnswer, LocalCommand, ask, sockets_in
from pygroups.drivers.local_socket import COMMANDS_MAX, LocalSocket
from tests.patience import patience

ME, GONE = Address("C", "c" * 16), Address("A", "a" * 16)
CALL = LocalCommand("vouch", GONE)


class Stack:
    """Stands for a stack: it answers a word at once, or never."""

    def __init__(self, answers: bool = True) -> None:
        self.asked: list[Event] = []
        self.answers = answers
        self.local = LocalSocket("g", ME, self.ask, lambda: (ME, GONE))

    def ask(self, event: Event) -> None:
        self.asked.append(event)
        assert isinstance(event, Vouched)
        if self.answers:
            asyncio.get_running_loop().call_soon(self.local.answered, VouchedFor(event.member, "taken"))


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for these tests."""
    monkeypatch.setattr(discovery_options, "MEETING_ROOT", tmp_path)
    return tmp_path / f"pygroups-{os.geteuid()}"


def run(story: Callable[[Stack], Awaitable[None]], answers: bool = True) -> Stack:
    async def main() -> Stack:
        stack = Stack(answers)
        await stack.local.open()
        try:
            async with asyncio.timeout(patience(30)):
                await story(stack)
        finally:
            stack.local.close()
            await asyncio.sleep(0.01)
        return stack

    return asyncio.run(main())


async def answer_to(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data)
        if len(data) <= COMMAND_MAX:
            writer.write_eof()
        return await reader.read()
    except ConnectionError:  # it was closed before all was read
        return b""
    finally:
        writer.close()


def test_a_call_is_answered_and_only_its_user_can_make_one(root: Path) -> None:
    async def story(stack: Stack) -> None:
        path = stack.local.path
        assert sockets_in(root / "g") == [path]
        assert [stat.S_IMODE(one.lstat().st_mode) for one in (path, root, root / "g")] == [0o600, 0o700, 0o700]
        answers = [await asyncio.to_thread(ask, path, CALL) for _ in range(2)]
        assert answers == [CommandAnswer(ME, [ME, GONE], "taken")] * 2

    assert run(story).asked == [Vouched(GONE), Vouched(GONE)]
    assert sockets_in(root / "g") == []


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"no json\n", b"\xff\n", b'{"call":"stop","member":["A","a1"]}\n', b"x" * 4 * COMMAND_MAX],
    ids=["nothing", "empty", "text", "bytes", "unknown", "long"],
)
def test_whoever_is_no_command_gets_no_answer(data: bytes) -> None:
    async def story(stack: Stack) -> None:
        assert await answer_to(stack.local.path, data) == b""
        assert (await asyncio.to_thread(ask, stack.local.path, CALL)) is not None, "the next caller is served"

    assert run(story).asked == [Vouched(GONE)]


def test_so_many_calls_at_a_time_and_no_more() -> None:
    async def story(stack: Stack) -> None:
        call = msgspec.json.encode(CALL) + b"\n"
        waiting = [asyncio.create_task(answer_to(stack.local.path, call)) for _ in range(COMMANDS_MAX)]
        while len(stack.asked) < COMMANDS_MAX:
            await asyncio.sleep(0.001)
        assert await answer_to(stack.local.path, call) == b""
        stack.local.answered(VouchedFor(GONE, "alive"))
        assert all([b'"alive"' in await one for one in waiting])

    assert len(run(story, answers=False).asked) == COMMANDS_MAX


def test_a_call_that_waits_ends_with_its_member(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stack: Stack) -> None:
        waiting = asyncio.create_task(asyncio.to_thread(ask, stack.local.path, CALL))
        while not stack.asked:
            await asyncio.sleep(0.001)
        stack.local.close()
        with pytest.raises(ConnectionError):
            await waiting

    run(story, answers=False)


def test_a_stack_that_never_answers_keeps_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "PATIENCE", 0.05)

    async def story(stack: Stack) -> None:
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(ask, stack.local.path, CALL)
        assert not stack.local.connections
        assert not stack.local.waiting

    run(story, answers=False)


def test_the_socket_of_a_process_that_was_killed_is_removed(root: Path) -> None:
    async def story(stack: Stack) -> None:
        killed = root / "g" / "dead"
        local_socket._listening(killed).close()
        assert sockets_in(root / "g") == [stack.local.path, killed]
        assert ask(killed, CALL) is None
        assert ask(killed, CALL) is None, "another command may have removed it"
        assert sockets_in(root / "g") == [stack.local.path]

    run(story)


def test_a_member_goes_on_without_a_socket(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another user may use its folder."""
    root.mkdir(mode=0o755)

    async def story(stack: Stack) -> None:
        assert not stack.local.path.exists()

    with caplog.at_level(logging.WARNING):
        run(story)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"{ME} cannot listen for commands at {root / 'g' / ME.incarnation}"
    ]


def test_a_forked_child_leaves_the_socket_alone() -> None:
    async def story(stack: Stack) -> None:
        child = os.fork()
        if not child:
            stack.local.close()
            os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        assert (await asyncio.to_thread(ask, stack.local.path, CALL)) is not None

    run(story)


def test_the_longest_names_fit_into_the_path_of_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes 107 bytes."""
    monkeypatch.setattr(discovery_options, "MEETING_ROOT", Path("/tmp"))
    monkeypatch.setattr(os, "geteuid", lambda: 2**32 - 2)
    folder = local_commands.folder_of("g" * 64)
    assert len(str(folder / f".{'c' * 16}")) <= 107
