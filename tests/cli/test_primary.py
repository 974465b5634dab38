"""`pygroups primary`: an operator's word reaches a blocked group, with real processes; and every refusal."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pygroups import Channel
from pygroups.cli.main import main
from pygroups.core.address import Address
from pygroups.drivers import local_commands
from pygroups.drivers.local_commands import folder_of, sockets_in
from tests.cli.uniform_group import SOON, Process, group_name, histories, killed_at_once, until


@pytest.fixture
def group() -> Iterator[str]:
    with group_name() as name:
        yield name


@pytest.fixture
def three(group: str, tmp_path: Path) -> Iterator[dict[str, Process]]:
    """Three members in one view."""
    processes: dict[str, Process] = {}
    try:
        for name in "ABC":
            processes[name] = Process(group, name, tmp_path)
            names = "ABC"[: len(processes)]
            until(lambda names=names: all(processes[one].has_view_of(*names) for one in names))
        yield processes
    finally:
        for process in processes.values():
            process.kill()


def primary(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["primary", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_two_of_three_are_killed_and_an_operator_lets_the_third_go_on(
    three: dict[str, Process], group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(group)
    assert [stat.S_IMODE(path.lstat().st_mode) for path in sockets_in(folder)] == [0o600] * 3
    assert stat.S_IMODE(folder.lstat().st_mode) == 0o700
    a, b, c = (three[name].address for name in "ABC")

    code, out, err = primary(capsys, group, "--gone", a)
    assert (code, out) == (1, "")
    assert f"{a} has not ended: " in err
    assert "received data from it recently" in err
    code, _, err = primary(capsys, group, "--gone", "A@00")
    assert code == 2
    assert "knows no member A@00; the other members of its view: " in err

    killed_at_once(three["A"], three["B"])
    until(lambda: three["C"].lines("blocked"))
    assert not three["C"].lines("unblocked")
    assert three["C"].has_view_of("A", "B", "C")
    code, out, err = primary(capsys, group, "--gone", a, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"group": group, "gone": a, "told": c}
    assert not three["C"].lines("unblocked"), "B may live, and it is the first of the others"
    code, out, err = primary(capsys, group, "--gone", b, "--json")
    assert (code, err) == (0, "")
    until(lambda: three["C"].has_view_of("C"))
    until(lambda: three["C"].lines("message")[-1][0] == "C")
    assert len(three["C"].lines("unblocked")) == 1

    code, _, err = primary(capsys, group, "--gone", b)
    assert code == 2
    assert f"{c} of group {group} knows no member {b}; the other members of its view: none" in err
    assert len(sockets_in(folder)) == 1, "all were asked, and those of ended members are removed"
    three["C"].kill()
    assert len(histories(tmp_path / "journal", c)) == 2
    code, _, err = primary(capsys, group, "--gone", a)
    assert (code, err) == (2, f"pygroups: no member of group {group} runs on this machine under this user\n")


@pytest.mark.slow
def test_two_of_four_are_killed_and_an_operator_tells_one_of_the_others(
    group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C and D are half of the view, without its first member.  The member that is told tells the other one."""
    processes: dict[str, Process] = {}
    try:
        for name in "ABCD":
            processes[name] = Process(group, name, tmp_path)
            names = "ABCD"[: len(processes)]
            until(lambda names=names: all(processes[one].has_view_of(*names) for one in names))
        a, c, d = (processes[name].address for name in "ACD")
        killed_at_once(processes["A"], processes["B"])
        until(lambda: processes["C"].lines("blocked") and processes["D"].lines("blocked"))
        code, out, err = primary(capsys, group, "--gone", a, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["told"] in (c, d)
        until(lambda: processes["C"].has_view_of("C", "D") and processes["D"].has_view_of("C", "D"))
        assert len(processes["C"].lines("unblocked")) == len(processes["D"].lines("unblocked")) == 1
        for name in "CD":
            processes[name].kill()
        assert len(set(histories(tmp_path / "journal", c)) & set(histories(tmp_path / "journal", d))) == 2
    finally:
        for process in processes.values():
            process.kill()


# -- what is refused


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["g"], "name the member that has ended: pygroups primary GROUP --gone NAME@INCARNATION"),
        (["g", "--gone", "A"], "'A' is not an address: write it as name@incarnation, for instance A@3f2c91d0"),
        (["a/b", "--gone", "A@12"], "'a/b' cannot name a group: "),
        (["no-such-group-here", "--gone", "A@12"], "no member of group no-such-group-here runs on this machine"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = primary(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_members_of_a_built_profile_take_no_word(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They open no socket."""

    async def story() -> None:
        async with Channel(group, name="A") as channel:
            assert sockets_in(folder_of(group)) == []
            code, _, err = await asyncio.to_thread(primary, capsys, group, "--gone", str(channel.address))
            assert code == 2
            assert f"no member of group {group} on this machine accepts this command" in err

    asyncio.run(story())


def test_a_folder_of_another_user_or_open_to_others_is_not_used(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(group)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700)
    folder.chmod(0o755)
    code, _, err = primary(capsys, group, "--gone", "A@12")
    assert code == 2
    assert "other users have access to" in err


class Peer:
    """Something that listens where a member would, and answers with these bytes, or not at all."""

    def __init__(self, group: str, incarnation: str, answer: bytes | None) -> None:
        self.path = folder_of(group) / incarnation
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(str(self.path))
        self.sock.listen()
        self.answer = answer
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.sock.accept()
        with connection:
            connection.recv(local_commands.COMMAND_MAX)
            if self.answer is None:
                time.sleep(1)
            else:
                connection.sendall(self.answer)

    def close(self) -> None:
        self.thread.join(SOON)
        self.sock.close()


@pytest.mark.parametrize("answer", [None, b"", b"[1]\n", b"\xff\n"])
def test_a_member_that_does_not_answer_is_named(
    answer: bytes | None, group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs, or something else listens there."""
    monkeypatch.setattr(local_commands.ask, "__defaults__", (0.2,))
    peer = Peer(group, "ab12", answer)
    code, _, err = primary(capsys, group, "--gone", "A@12")
    peer.close()
    assert (code, err.count("\n")) == (1, 1)
    assert f"no member of group {group} on this machine answered: ab12" in err


def test_the_next_member_is_asked_if_one_does_not_know_the_name(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    me = Address("C", "cd34")
    unknown = local_commands.CommandAnswer(Address("B", "ab12"), [Address("B", "ab12")], "unknown")
    taken = local_commands.CommandAnswer(me, [me], "taken")
    peers = [Peer(group, one.me.incarnation, msgspec.json.encode(one) + b"\n") for one in (unknown, taken)]
    code, out, _ = primary(capsys, group, "--gone", "A@12")
    for peer in peers:
        peer.close()
    assert code == 0
    assert out.startswith("C@cd34 accepted that A@12 has ended")


# -- the help


def test_the_help_teaches_the_command_and_lists_it_where_a_profile_needs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["primary", "--help"]) == 0
    assert "pygroups primary orders --gone A@3f2c91d0aa5517e4" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "primary" in capsys.readouterr().out
