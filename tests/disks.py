"""A disk of a few pages, for tests of what a full one does.  Needs root, as the tests with network namespaces do."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = 1 << 20


@contextlib.contextmanager
def full_disk(folder: Path, size: int = SIZE) -> Iterator[Path]:
    """A file system of `size` bytes at `folder`, which `fill` fills."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True, timeout=10)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=10)


def resize(folder: Path, size: int) -> None:
    """Give the file system at `folder` another size."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True, timeout=10)


def fill(folder: Path) -> Path:
    """Take all room that is left on the disk, and return the file that has it.

    The last page of a file that is open may have room for some more bytes.
    """
    rest = folder / "rest"
    file = os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while True:
            os.write(file, bytes(4_096))
    except OSError as error:
        assert error.errno == errno.ENOSPC
    finally:
        os.close(file)
    return rest
