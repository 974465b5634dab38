"""The lines of the library's log on the standard error of `pygroups join`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

import pytest

from pygroups.channel.log import Log
from pygroups.cli.logs import LINE_MAX, show_warnings


class Pipe:
    """A pipe as standard error, and a channel's log."""

    def __init__(self) -> None:
        self.reads, self.writes = os.pipe()
        os.set_blocking(self.reads, False)
        self.log = Log("A", "g")

    def read(self) -> bytes:
        try:
            return os.read(self.reads, 1 << 20)
        except BlockingIOError:
            return b""


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    made = Pipe()
    logger = logging.getLogger("pygroups")
    before = logger.handlers[:]
    with open(made.writes, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest has some
        show_warnings()
        yield made
    logger.handlers[:] = before
    os.close(made.reads)


def test_a_warning_is_a_plain_line_in_a_pipe(pipe: Pipe) -> None:
    pipe.log.warning("give insecure=True to %s", "\x1b[31mB\n")
    assert pipe.read() == b"pygroups: A in group 'g': give --insecure to ?[31mB\n"
    pipe.log.info("a line for programs")
    pipe.log.event("the command prints %s", "its own line")
    assert pipe.read() == b""


def test_a_reader_that_does_not_read_blocks_no_member(pipe: Pipe) -> None:
    text = "x" * 2 * LINE_MAX
    for _ in range(1_000):  # more than the pipe takes
        pipe.log.warning(text)
    first = pipe.read()
    assert 0 < len(first) < 1_000 * LINE_MAX
    assert {len(line) for line in first.splitlines(keepends=True)} == {LINE_MAX}
    pipe.log.warning("the reader reads again")
    assert pipe.read() == b"pygroups: A in group 'g': the reader reads again\n"


def test_a_closed_pipe_raises_nothing(pipe: Pipe) -> None:
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, pipe.reads)  # the only reader goes
    os.close(nowhere)
    pipe.log.warning("to no reader")
