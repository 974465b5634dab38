"""One group, one place: who finds whom, whatever the environment says and whoever removes the folder."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pygroups import UsageError
from tests.channel.socket_group import Group, in_a_group, until

WAITS_FOR_TWO = """
import asyncio, sys
from pygroups import Channel

async def main():
    async with Channel(sys.argv[1]) as channel, asyncio.timeout(20):
        print("joined", flush=True)
        while len(channel.view.members) < 2:
            await asyncio.sleep(0.01)
        print("met", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


@pytest.mark.slow
def test_processes_of_one_user_meet_whatever_their_environments_say(tmp_path: Path) -> None:
    group = f"test-{secrets.token_hex(8)}"
    environments = [{"XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}, {"HOME": "/", "XDG_RUNTIME_DIR": ""}]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WAITS_FOR_TWO, group],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for environment in environments
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(2)] == ["joined\n", "met\n"]
        for process in processes:
            process.communicate("\n", timeout=120)
            assert process.returncode == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(Path("/tmp", f"pygroups-{os.geteuid()}", group), ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.3, 1.0])
def test_who_comes_after_the_folder_was_removed_comes_into_the_same_group(tmp_path: Path, pause: float) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A"), await group.read("B")
        await until(lambda: len(first.channel.view.members) == 2)
        shutil.rmtree(group.folder)
        await asyncio.sleep(pause)
        third = await group.read("C")
        await until(lambda: all(len(one.channel.view.members) == 3 for one in (first, second, third)))

    in_a_group(tmp_path, story)


def test_a_process_with_another_transport_is_refused_and_founds_no_second_group(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        a = await group.read("A", transport="udp")
        with pytest.raises(UsageError, match=r"^A@\w+ of group g uses .*: give transport='udp'$"):
            await group.read("B")
        await group.read("C", transport="udp")
        await until(lambda: len(a.channel.view.members) == 2)

    in_a_group(tmp_path, main)


@pytest.mark.slow
def test_a_member_survives_a_file_in_place_of_its_folder(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.read("A")
        shutil.rmtree(group.folder)
        group.folder.write_text("no folder")
        await asyncio.sleep(0.5)
        await first.channel.send(b"still here", until="stable")
        group.folder.unlink()
        await asyncio.sleep(0.5)
        await group.read("B")
        await until(lambda: len(first.channel.view.members) == 2)

    in_a_group(tmp_path, story)
