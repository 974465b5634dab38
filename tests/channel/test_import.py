"""What `import pygroups` imports: many processes of one service start at the same moment, and each pays for it."""

from __future__ import annotations

import subprocess
import sys

MODULES_MAX = 220  # of pygroups, its packages included: the present number and a little room

NOT_IMPORTED = (
    "pygroups.drivers.discovery.network",
    "pygroups.drivers.udp.udp",
    "pygroups.journal.writer",
    "cryptography",
    "difflib",
    "tempfile",
)


def test_what_few_channels_need_is_imported_by_those() -> None:
    program = "import sys, pygroups; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert not set(loaded) & set(NOT_IMPORTED)
    assert len([name for name in loaded if name.partition(".")[0] == "pygroups"]) <= MODULES_MAX
