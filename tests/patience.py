"""How much longer something may take on a machine that has other work: no test fails because others want the cores."""

from __future__ import annotations

import os
from pathlib import Path


def patience(seconds: float) -> float:
    """`seconds`, stretched by how many others want this machine's processors, now or in the last minute."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    return seconds * max(1.0, max(running, os.getloadavg()[0]) / (os.cpu_count() or 1))
