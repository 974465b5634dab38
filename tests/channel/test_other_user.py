"""A second user of the machine, who knows where everything is: a group with a secret shows and gives it nothing."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.channel.socket_group import Group, in_a_group
from tests.channel.test_secret import NEW, key_file

NOBODY = 65_534


@contextmanager
def another_user() -> Iterator[None]:
    """The whole process acts as another user.  Only root can do that."""
    groups, gid = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def may(do: Callable[[], object]) -> bool:
    try:
        do()
    except PermissionError:
        return False
    return True


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))


def uses(root: Path, sockets: list[Path]) -> dict[str, Callable[[], object]]:
    """All that a user can try with the files, folders and sockets of a group, by a description."""
    found: dict[str, Callable[[], object]] = {f"connect to {path}": lambda path=path: connect(path) for path in sockets}
    for path in [one for one in root.rglob("*") if one.parent != root and one.is_file()]:
        found[f"read {path}"] = lambda path=path: path.read_bytes()
        found[f"write {path}"] = lambda path=path: path.open("ab").close()
    for path in [one for one in root.rglob("*") if one.is_dir() and one != root / "journal"]:
        found[f"list {path}"] = lambda path=path: os.listdir(path)
        found[f"plant in {path}"] = lambda path=path: (path / "planted").touch()
    return found


def allowed(root: Path, sockets: list[Path]) -> list[str]:
    """What another user of the machine may do there, found by doing it, or from the modes if this user is not root."""
    tried = uses(root, sockets)
    if os.geteuid() == 0:
        with another_user():
            return [what for what, do in tried.items() if may(do)]
    folders = [one for one in root.rglob("*") if one.is_dir() and one != root / "journal"]
    return [f"list {one}" for one in folders if one.stat().st_mode & 0o077]


def test_another_user_reads_and_changes_nothing_of_a_group(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o755)

        async def story(group: Group) -> None:
            group.folder = root / "groups"
            sockets = []
            for member in "AB":
                path = key_file(tmp_path, NEW, name=member)
                options = {"profile": "uniform", "journal": root / "journal", "journal_payloads": True}
                reader = await group.read(member, secret=path, **options)
                sockets.append(reader.channel._session.member.local.path)  # type: ignore[union-attr]
            kinds = {what.split()[0] for what in uses(root, sockets)}
            assert kinds == {"connect", "read", "write", "list", "plant"}
            assert allowed(root, sockets) == []
            (root / "groups").chmod(0o755)  # as a careless user might do
            assert {what.split()[0] for what in allowed(root, sockets)} >= {"list"}

        in_a_group(tmp_path, story)
