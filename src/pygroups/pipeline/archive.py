"""The classes of Spark as the JVM loads them fastest: an archive in the user's cache, written once by the JVM itself.

A new JVM spends more CPU on finding, checking and preparing some 9,000 classes than a small audit spends on its rows.
The first small audit tells its JVM to write them to a file when it ends (after the command has, some 150 MB); later
ones map that file. The JVM checks for itself whether a file fits, and goes on without one if not. Without a cache that
can be written nothing is done.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

_BEGINS: Final = (0xF00BABA8).to_bytes(4, "little")  # the JVM writes it last, so that half a file is not taken for one
_QUIET: Final = "-Xlog:disable"  # it warns on standard output of each class that cannot be archived


def archive_options(java: Path, spark: Path) -> list[str]:
    """Options for a JVM `java` with the Spark in folder `spark`: read the archive, or write it if there is none."""
    try:
        file = _file(java, spark)
        file.parent.mkdir(parents=True, exist_ok=True)
        if _is_complete(file):
            return [f"-XX:SharedArchiveFile={file}", "-Xshare:auto", _QUIET]
        if not os.access(file.parent, os.W_OK):
            return []
    except OSError:
        return []
    return [f"-XX:ArchiveClassesAtExit={file}", _QUIET]


def _file(java: Path, spark: Path) -> Path:
    """Another Java or another Spark has another archive; a path with a space cannot be told to Spark's JVM."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pygroups"
    if " " in str(cache):
        raise NotADirectoryError(cache)
    real = java.resolve()
    told = f"{real} {real.stat().st_mtime_ns} {spark.resolve()} {(spark / 'jars').stat().st_mtime_ns}"
    return cache / f"spark-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def _is_complete(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return content.read(len(_BEGINS)) == _BEGINS
    except FileNotFoundError:
        return False
