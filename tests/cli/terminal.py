"""A command on a terminal of its own, as a person meets it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from typing import Final, Self

from tests.patience import patience

SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.02


class Terminal:
    """`python -m pygroups ...` as the foreground process of a new terminal."""

    def __init__(self, *arguments: str) -> None:
        self._start([sys.executable, "-m", "pygroups", *arguments])

    @classmethod
    def of(cls, *command: str) -> Self:
        """Another command."""
        terminal = cls.__new__(cls)
        terminal._start(command)
        return terminal

    def _start(self, command: Sequence[str]) -> None:
        self.keyboard, theirs = pty.openpty()
        self.screen = ""
        self.closing = False
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        with contextlib.suppress(OSError):  # the process has ended
            while not self.closing:
                if select.select([self.keyboard], [], [], LOOK_SECONDS)[0]:
                    self.screen += decode(os.read(self.keyboard, 4096))

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def shows(self, text: str) -> None:
        """Wait until `text` is on the screen."""
        end = time.monotonic() + patience(SECONDS)
        while text not in self.screen:
            assert time.monotonic() < end, f"{text!r} is not on the screen: {self.screen!r}"
            time.sleep(0.01)

    @property
    def lines(self) -> list[str]:
        return self.screen.replace("\r\n", "\n").splitlines()

    def hang_up(self) -> None:
        """Close the terminal, as a person closes its window."""
        self.closing = True
        self.reader.join(patience(SECONDS))  # a terminal that is being read stays open
        os.close(self.keyboard)
        self.keyboard = -1

    def ended(self) -> int:
        """The exit code; all it said is on the screen then."""
        code = self.process.wait(patience(SECONDS))
        self.reader.join(patience(SECONDS))
        return code

    def close(self) -> None:
        """Whatever it does."""
        self.process.kill()
        self.process.wait()
        if self.keyboard >= 0:
            self.reader.join(patience(SECONDS))
            os.close(self.keyboard)
