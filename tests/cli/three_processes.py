"""Three processes of `pygroups join` in one group, for the tests of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.cli.test_join import Shell


@contextmanager
def three_processes(
    folder: Path, profile: str, options: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> Iterator[dict[str, Shell]]:
    """A, B and C, which start one after the other, by name; each has told its view of all three.  `options`:
    those of a process, by its name."""
    running: dict[str, Shell] = {}
    for name in "ABC":
        running[name] = Shell(folder, "orders", "--name", name, "--profile", profile, *options.get(name, ()))
        running[name].view_of(*"ABC"[: len(running)])
    for name in "AB":
        running[name].view_of(*"ABC")
    yield running
    for member in running.values():
        if member.process.poll() is None:
            member.process.kill()
        member.process.wait()
        for pipe in (member.process.stdin, member.process.stdout, member.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def lines(name: str, begin: int, end: int) -> bytes:
    """The lines that `name` types: its name with each number from `begin` to `end`, exclusive."""
    return b"".join(b"%s%d\n" % (name.encode(), number) for number in range(begin, end))
