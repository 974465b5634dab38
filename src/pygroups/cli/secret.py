"""`pygroups secret`: the keys of a group."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Final, Literal

from pygroups.cli.options import Whole
from pygroups.core.errors import UsageError
from pygroups.wire.ring import EPOCH_MAX, KEY_NEW, line_of

HEADING: Final = (
    "# The keys of a pygroups group: on each line an epoch and a key in base64; the first is the key to send with.\n"
    "# Who has this file can read and send everything. Keep its mode 600, and copy it over safe ways only.\n"
)


def secret(action: Literal["new"], file: Path | None = None, /, *, epoch: Whole = 1) -> int:
    """Make a new random key, for a file that all members of a group get.

    Parameters
    ----------
    action
        The word "new".
    file
        The file to write, with mode 600; it must not exist. Without a file the line of the key is printed.
    epoch
        The number of the key, from 0 to 255. Each key of one file needs a number of its own.
    """
    if not 0 <= epoch <= EPOCH_MAX:
        raise UsageError(f"--epoch {epoch} must be a number from 0 to {EPOCH_MAX}")
    line = line_of(epoch, secrets.token_bytes(KEY_NEW))
    if file is None:
        sys.stdout.write(line)
        return 0
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(
            f"{file} exists: name another file, or add a key to it with `pygroups secret new --epoch N >> {file}`"
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from error
    with os.fdopen(opened, "w") as out:
        out.write(HEADING + line)
    return 0
