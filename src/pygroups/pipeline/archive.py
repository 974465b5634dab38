"""An archive of Spark's classes, from which a JVM loads the classes fastest.  The JVM writes the archive once, for
users who ask for the archive.

A new JVM spends CPU on finding, checking and preparing some 9,000 classes, and an archive saves most of that.  The JVM
needs more CPU time to write the archive than one audit takes (docs/decisions/0062-rules-count-first.md has the
figures), so the archive pays for users with many audits.  With `PYGROUPS_JVM_ARCHIVE=FILE` in the environment the JVM
of the first small audit writes FILE after the command has ended (some 190 MB), and the JVM of each later audit maps it.
The JVM checks whether a file fits.
"""

import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "PYGROUPS_JVM_ARCHIVE"
_BEGINS: Final = (0xF00BABA8).to_bytes(4, "little")  # the JVM writes it last, so that half a file is not taken for one
_QUIET: Final = "-Xlog:disable"  # without it the JVM warns on standard output of classes that cannot be archived


def archive_options() -> list[str]:
    """Options for the JVM: read the archive that the environment names, or write it if there is none; or nothing.

    A path with a space gives no options, because Spark cannot pass it to the JVM.
    """
    name = os.environ.get(VARIABLE, "")
    if not name or " " in name:
        return []
    file = Path(name).absolute()
    if _is_complete(file):
        return [f"-XX:SharedArchiveFile={file}", "-Xshare:auto", _QUIET]
    return [f"-XX:ArchiveClassesAtExit={file}", _QUIET] if os.access(file.parent, os.W_OK) else []


def _is_complete(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return content.read(len(_BEGINS)) == _BEGINS
    except OSError:
        return False
