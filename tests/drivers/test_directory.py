"""Discovery by a folder: who is found, who may found, and what the dead leave behind."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.errors import UsageError
from pygroups.core.limits import Config
from pygroups.drivers.contacts import Contact
from pygroups.drivers.discovery import directory
from pygroups.drivers.discovery.directory import Directory
from pygroups.drivers.discovery.entries import Entry, founders_lock
from pygroups.drivers.discovery.options import DiscoverySources, GroupsFolder, default_folder, parse_discovery
from tests.drivers.tiny_stack import A, B, C
from tests.patience import patience

ONE_PROCESS = """
import asyncio, sys
from pathlib import Path
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.drivers.contacts import Contact
from pygroups.drivers.discovery.directory import Directory
from pygroups.drivers.discovery.options import GroupsFolder

async def main():
    directory = Directory(GroupsFolder(Path(sys.argv[1]), False), "g", Address(sys.argv[2], sys.argv[3]), Config())
    found = asyncio.Queue()
    directory.happened = found.put_nowait
    directory.open("127.0.0.1:1")
    directory.find()
    answer = await found.get()
    if sys.argv[4] == "member" and answer.may_found:
        await asyncio.sleep(0.05)
        directory.announce(True)
    print("founder" if answer.may_found else "guest", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path: Path) -> GroupsFolder:
    return GroupsFolder(tmp_path / "groups", private=False)


counts: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    counts.clear()


def opened(
    place: GroupsFolder, me: Address, contact: str = "127.0.0.1:1", loop: asyncio.AbstractEventLoop | None = None
) -> tuple[Directory, list[Found]]:
    directory = Directory(place, "g", me, Config(lock_retry=1_000, directory_period=1_000), loop)
    found: list[Found] = []
    directory.happened = found.append  # type: ignore[assignment]
    directory.count = lambda what: counts.update([what])
    directory.open(contact)
    return directory, found


def started(place: GroupsFolder, me: Address, what: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ONE_PROCESS, str(place.root), me.name, me.incarnation, what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(patience(10)):
        while not condition():
            await asyncio.sleep(0.001)


def test_the_first_may_found_and_is_found_by_the_next(place: GroupsFolder) -> None:
    first, found = opened(place, A, "127.0.0.1:11")
    first.find()
    assert found == [Found({}, True)]
    first.announce(True)
    second, found = opened(place, B)
    second.find()
    assert found == [Found({A: "127.0.0.1:11"}, False, complete=True)]
    first.close()
    second.close()


def test_whoever_is_no_member_yet_is_not_found(place: GroupsFolder) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    assert second.members() == {}
    first.announce(True)
    assert list(second.members()) == [A]
    first.announce(False)
    assert second.members() == {}
    first.close()
    second.close()


def test_while_one_founds_the_next_waits_and_then_finds_it(place: GroupsFolder) -> None:
    async def main() -> None:
        first, found_by_first = opened(place, A)
        second, found_by_second = opened(place, B)
        first.find()
        second.find()
        await asyncio.sleep(0.01)
        assert (found_by_first, found_by_second) == ([Found({}, True, {B: "127.0.0.1:1"})], [])
        first.announce(True)
        await until(lambda: found_by_second)
        assert found_by_second == [Found({A: "127.0.0.1:1"}, False, complete=True)]
        first.close()
        second.close()

    asyncio.run(main())


def test_while_a_group_takes_somebody_in_nobody_founds_another(place: GroupsFolder) -> None:
    """The only member may have died with the news of the next view on its way."""

    async def main() -> None:
        invited, _ = opened(place, A)
        other, found = opened(place, B)
        invited.announce(False, invited=True)
        other.find()
        await asyncio.sleep(0.02)
        assert found == []
        invited.announce(True)
        await until(lambda: found)
        assert found == [Found({A: "127.0.0.1:1"}, False, complete=True)]
        invited.close()
        other.close()

    asyncio.run(main())


def test_an_invitation_of_a_process_that_stands_still_is_not_waited_for(place: GroupsFolder) -> None:
    async def main() -> None:
        invited, _ = opened(place, A)
        other, found = opened(place, B)
        invited.announce(False, invited=True)
        long_ago = time.time() - other.invitation_s - 1
        os.utime(invited.path, (long_ago, long_ago))
        other.find()
        assert found == [Found({}, True, {A: "127.0.0.1:1"})]
        invited.close()
        other.close()

    asyncio.run(main())


@pytest.mark.parametrize("gives_up", [Directory.close, lambda directory: directory.announce(False)])
def test_whoever_does_not_found_after_all_lets_the_next_one(
    place: GroupsFolder, gives_up: Callable[[Directory], None]
) -> None:
    async def main() -> None:
        first, _ = opened(place, A)
        second, found = opened(place, B)
        first.find()
        second.find()
        gives_up(first)
        await until(lambda: found)
        assert [(answer.members, answer.may_found) for answer in found] == [({}, True)]
        second.close()
        first.close()

    asyncio.run(main())


@pytest.mark.slow
def test_of_many_processes_that_start_at_once_one_founds(place: GroupsFolder) -> None:
    addresses = [Address(f"m{number}", f"{number:016x}") for number in range(8)]
    processes = [started(place, address, "member") for address in addresses]
    try:
        words = [process.stdout.readline().strip() for process in processes if process.stdout]
        assert sorted(words) == ["founder"] + ["guest"] * 7
    finally:
        for process in processes:
            ended(process)


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_and_its_lock_is_free(place: GroupsFolder) -> None:
    process = started(place, A, "holds the lock")
    assert process.stdout is not None
    assert process.stdout.readline() == "founder\n"
    entry = place.root / "g" / str(A)
    assert entry.exists()
    ended(process)
    second, found = opened(place, B)
    second.find()
    assert found == [Found({}, True)]
    assert not entry.exists()
    second.close()


def test_an_entry_that_somebody_removed_comes_back(place: GroupsFolder) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    first.announce(True)
    first.path.unlink()
    assert second.members() == {}
    first.refresh()
    assert list(second.members()) == [A]
    first.close()
    assert second.members() == {}
    second.close()


def test_an_entry_that_somebody_removes_while_it_is_made_is_made_again(
    place: GroupsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        first, _ = opened(place, A)
        flock, looks = fcntl.flock, [True, True]

        def somebody_looks(file: int, how: int) -> None:
            if how & fcntl.LOCK_EX and looks and looks.pop():
                assert first.members() == {}  # it is not locked yet, so it seems to be of a dead process
            flock(file, how)

        monkeypatch.setattr(fcntl, "flock", somebody_looks)
        second, _ = opened(place, B)
        second.announce(True)
        assert not looks
        assert first.members() == {B: "127.0.0.1:1"}
        first.close()
        second.close()

    asyncio.run(story())


def test_the_last_process_removes_the_folder_of_the_group(place: GroupsFolder) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    first.find()
    first.announce(True)
    first.close()
    assert sorted(os.listdir(second.folder)) == [str(B), "lock"]
    second.close()
    assert os.listdir(place.root) == []
    first.refresh()
    assert os.listdir(place.root) == []


def test_the_folder_stays_while_another_process_holds_the_lock(place: GroupsFolder) -> None:
    """The entry of the founder was removed, and it holds the lock: nothing that it relies on is removed."""
    founder, found = opened(place, A)
    last, _ = opened(place, B)
    founder.find()
    assert found[0].may_found
    founder.path.unlink()
    last.close()
    assert os.listdir(last.folder) == ["lock"]
    founder.announce(True)
    assert sorted(os.listdir(founder.folder)) == [str(A), "lock"]
    founder.close()


def test_a_lock_that_the_last_process_removes_lets_nobody_found(
    place: GroupsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process opens the lock file, then the last one removes the file: the lock on it proves nothing."""
    last, _ = opened(place, A)
    real, seen = fcntl.flock, list[str]()

    def flock(file: int, how: int) -> None:
        if os.readlink(f"/proc/self/fd/{file}").endswith("/lock") and not seen:
            seen.append("opened")
            last.close()
            assert not place.root.joinpath("g").exists()
        real(file, how)

    place.root.joinpath("g", "lock").touch()
    monkeypatch.setattr(fcntl, "flock", flock)
    assert founders_lock(place.root / "g") is None
    assert seen


def test_a_folder_that_the_last_process_removes_while_another_one_starts_is_made_again(
    place: GroupsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, _ = opened(place, A)
    real = directory.written

    def written(folder: Path, me: Address, entry: Entry) -> int:
        last.close()
        return real(folder, me, entry)

    monkeypatch.setattr(directory, "written", written)
    first, found = opened(place, B)
    first.find()
    assert found[0].may_found
    first.close()


FOUNDERS = """
import os, sys
from pathlib import Path
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.drivers.discovery.directory import Directory
from pygroups.drivers.discovery.options import GroupsFolder

root, name = Path(sys.argv[1]), sys.argv[2]
founded = 0
for number in range(30):
    directory = Directory(GroupsFolder(root / "groups", False), "g", Address(name, f"{number:016x}"), Config())
    directory.count = print
    directory.open("127.0.0.1:1")
    directory.wants_to_found = True
    answer = directory._found()
    if answer is not None and answer.may_found:
        marker = os.open(root / "founder", os.O_CREAT | os.O_EXCL)  # fails if there are two founders
        directory.announce(True)
        os.unlink(root / "founder")
        founded += 1
    directory.close()
print(founded)
"""


@pytest.mark.slow
def test_processes_that_come_and_go_never_found_two_groups_and_leave_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOUNDERS, str(tmp_path)]
    running = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name in "ABCD"]
    printed = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 4, printed
    assert all(founded.split()[-1].isdigit() for founded, _ in printed)
    left = opened(GroupsFolder(tmp_path / "groups", private=False), A)[0]
    left.close()
    assert os.listdir(tmp_path / "groups") == []


@pytest.mark.parametrize("text", [b"", b"{", b'{"member":true}', b'{"member":1,"contact":"x"}', b"\xff" * 2_000])
def test_an_entry_that_cannot_be_read_is_nobody(place: GroupsFolder, text: bytes) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    first.announce(True)
    os.ftruncate(first.entry, 0)
    os.pwrite(first.entry, text, 0)
    assert second.members() == {}
    first.close()
    second.close()


def test_links_and_other_files_are_nobody(place: GroupsFolder) -> None:
    first, _ = opened(place, A)
    first.announce(True)
    (first.folder / str(C)).symlink_to(first.path)
    (first.folder / "README").write_text("hello")
    second, _ = opened(place, B)
    assert list(second.members()) == [A]
    assert (first.folder / "README").exists()
    first.close()
    second.close()


# -- the file system does what it wants


def test_a_folder_that_somebody_removed_comes_back_before_it_is_looked_for(place: GroupsFolder) -> None:
    async def main() -> None:
        member, _ = opened(place, A, loop=asyncio.get_running_loop())
        member.announce(True)
        shutil.rmtree(place.root)
        await until(member.path.exists)
        newcomer, found = opened(place, B)
        newcomer.find()
        assert found == [Found({A: "127.0.0.1:1"}, False, complete=True)]
        assert counts["directory entries that were removed"] == 1
        member.close()
        newcomer.close()
        assert os.listdir(place.root) == []

    asyncio.run(main())


def test_an_announcement_is_seen_though_the_folder_was_removed(place: GroupsFolder) -> None:
    founder, found = opened(place, A)
    founder.find()
    assert found == [Found({}, True)]
    shutil.rmtree(place.root)
    founder.announce(True)
    newcomer, found = opened(place, B)
    newcomer.find()
    assert found == [Found({A: "127.0.0.1:1"}, False, complete=True)]
    founder.close()
    newcomer.close()


def test_an_entry_that_was_replaced_by_a_copy_is_written_anew(place: GroupsFolder) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    first.announce(True)
    text = first.path.read_bytes()
    first.path.unlink()
    first.path.write_bytes(text)  # as a restored backup does: nobody holds a lock on it
    first.refresh()
    assert list(second.members()) == [A]
    first.close()
    second.close()


@pytest.mark.parametrize("name", [str(C), str(Address("D", "d" * 16))])
def test_a_folder_named_like_an_entry_is_nobody(place: GroupsFolder, name: str) -> None:
    first, found = opened(place, A)
    (first.folder / name).mkdir()
    first.find()
    assert found == [Found({}, True)]
    assert (first.folder / name).is_dir()
    first.close()


@pytest.mark.parametrize("call", ["pwrite", "utime", "open", "listdir"])
def test_what_the_file_system_refuses_is_counted_and_tried_again(
    place: GroupsFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    async def main() -> None:
        member, found = opened(place, A, loop=asyncio.get_running_loop())
        other, _ = opened(place, B)

        def refuses(*values: object, **more: object) -> int:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuses)
            member.find()
            member.announce(True)
            member.refresh()
            member.look_for_another_group()
            await asyncio.sleep(0.01)
            if call in ("open", "listdir"):
                assert found == []
        assert counts.total() > 0
        assert "Input/output error" in caplog.text
        await until(lambda: list(other.members()) == [A])
        if call in ("open", "listdir"):
            await until(lambda: found)
        member.close()
        other.close()

    asyncio.run(main())


def test_a_founder_whom_nobody_can_read_yet_keeps_the_others_from_founding(
    place: GroupsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        founder, found = opened(place, A, loop=asyncio.get_running_loop())
        founder.find()
        assert found == [Found({}, True)]
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", lambda *values: os.stat("/nowhere"))
            founder.announce(True)
            other, found = opened(place, B)
            other.find()
            await asyncio.sleep(0.01)
            assert found == []
        await until(lambda: found)
        assert found == [Found({A: "127.0.0.1:1"}, False, complete=True)]
        founder.close()
        other.close()

    asyncio.run(main())


def test_whoever_cannot_open_entries_founds_no_group(place: GroupsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        member, _ = opened(place, A)
        member.announce(True)
        newcomer, found = opened(place, B)
        real = os.open

        def full(path: Path, *more: int) -> int:
            if str(path).endswith(str(A)):
                raise OSError(errno.EMFILE, "Too many open files")
            return real(path, *more)

        monkeypatch.setattr(os, "open", full)
        newcomer.find()
        await asyncio.sleep(0.01)
        assert found == []
        assert counts["searches of the directory that failed"] >= 1
        monkeypatch.undo()
        await until(lambda: found)
        assert found == [Found({A: "127.0.0.1:1"}, False, complete=True)]
        member.close()
        newcomer.close()

    asyncio.run(main())


def test_members_of_a_second_group_of_this_name_are_told_of(
    place: GroupsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = opened(place, A)
    second, _ = opened(place, B)
    third, _ = opened(place, C)
    for member in (first, second, third):
        member.announce(True)
    first.installed((A, B))
    first.look_for_another_group()
    assert not counts  # it may be about to come into the view
    first.look_for_another_group()
    assert counts["searches that found another group of this name"] == 1
    assert f"there is a second group with the name g in {first.folder}, with the members {C}, " in caplog.text
    assert caplog.messages[-1].endswith("; the two groups merge when all their members can reach each other")
    third.close()
    first.look_for_another_group()
    first.look_for_another_group()
    assert counts["searches that found another group of this name"] == 1
    for member in (first, second):
        member.close()


def test_a_second_group_with_the_same_name_among_its_members_merges_without_the_older_one(
    place: GroupsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = opened(place, A)
    replaced, _ = opened(place, Address(A.name, "0" * 16))
    for member in (first, replaced):
        member.announce(True)
    first.installed((A, B))
    first.look_for_another_group()
    first.look_for_another_group()
    assert caplog.messages[-1].endswith("each other, after the older one of two processes with the same name has ended")
    for member in (first, replaced):
        member.close()


def test_where_a_process_looks_for_others_is_logged(place: GroupsFolder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "pygroups"):
        directory, _ = opened(place, A)
        directory.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"{A} looks for members of group g in {directory.folder}"
    ]


def test_a_folder_that_others_may_use_is_refused(place: GroupsFolder) -> None:
    (place.root / "g").mkdir(parents=True)
    (place.root / "g").chmod(0o770)
    with pytest.raises(UsageError, match="chmod 700"):
        opened(place, A)


def test_a_link_in_place_of_the_folder_is_refused(place: GroupsFolder, tmp_path: Path) -> None:
    place.root.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (place.root / "g").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="not a folder"):
        opened(place, A)


def test_another_users_folder_is_refused(place: GroupsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.root / "g").mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UsageError, match="another user"):
        opened(place, A)


def test_a_private_root_is_looked_at_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir(mode=0o755)
    with pytest.raises(UsageError, match="chmod 700"):
        opened(GroupsFolder(root, private=True), A)


@pytest.mark.parametrize("name", ["XDG_RUNTIME_DIR", "TMPDIR", "HOME", "TEMP"])
def test_where_groups_are_does_not_depend_on_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = default_folder()
    monkeypatch.setenv(name, str(tmp_path))
    assert default_folder() == before == GroupsFolder(Path(f"/tmp/pygroups-{os.geteuid()}"), private=True)


def test_what_discovery_may_be() -> None:
    one, other, to_all = Contact("10.0.0.1", 1), Contact("::1", 2), Contact("239.1.2.3", 4)
    assert parse_discovery(None) == DiscoverySources(folder=default_folder())
    assert parse_discovery("dir:/x/y") == DiscoverySources(folder=GroupsFolder(Path("/x/y"), private=False))
    assert parse_discovery("10.0.0.1:1, [::1]:2,10.0.0.1:1") == DiscoverySources(listed=(one, other))
    assert parse_discovery("dns:name:1") == DiscoverySources(names=(Contact("name", 1),))
    assert parse_discovery("udp:239.1.2.3:4") == DiscoverySources(to_all=(to_all,))
    several = ["dir:/x", "10.0.0.1:1", "[::1]:2", "udp:239.1.2.3:4", "cache:/y"]
    ways = DiscoverySources(GroupsFolder(Path("/x"), private=False), (one, other), (), (to_all,), Path("/y"))
    assert parse_discovery(several) == parse_discovery(tuple(several)) == ways


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("dir:", "names no folder"),
        ("cache:", "names no folder"),
        (5, "is not text|is not iterable"),
        ([5], "is not text"),
        ([], "names no source of members"),
        ("", "no address that a process can listen on"),
        ("carrier pigeon", "no address that a process can listen on: write dir:/path/to/folder, host:port,host:port, "),
        ("10.0.0.1:1,", "no address"),
        ("10.0.0.1:0", "no address that a process can listen on"),
        ("0.0.0.0:7", "no address that a process can listen on"),
        ("dns:name", "write dns:name:port"),
        ("udp:127.0.0.1:7", "has no IPv4 multicast address: write udp:239.1.2.3:7001"),
        ("udp:[ff02::1]:7", "has no IPv4 multicast address"),
        ("cache:/x", "alone finds no process before the first group"),
        (["dir:/x", "dir:/y"], "names two folders with dir:"),
        (",".join([f"10.0.0.1:{port}" for port in range(1, 258)]), "more than 256 addresses: use dns:name:port"),
    ],
)
def test_what_discovery_cannot_be(given: Any, sentence: str) -> None:
    with pytest.raises((UsageError, TypeError), match=sentence):
        parse_discovery(given)


def test_addresses_of_other_machines_need_insecure() -> None:
    with pytest.raises(UsageError, match=r"discovery names 10.0.0.1:1, .* and secret= or insecure=True$"):
        parse_discovery("127.0.0.1:1,10.0.0.1:1", insecure=False)
    assert parse_discovery("127.0.0.1:1,name:1", insecure=False).asks  # a name is checked when it is looked up
