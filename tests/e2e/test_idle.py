"""A group that sends nothing costs the network as much for each member as a group of half its size (0044, 0108)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import patience

HOME: Final = Path(__file__).resolve().parents[2]
ALONE: Final = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
SMALL, LARGE = 24, 48  # members; both are more than heartbeat_all
LINEAR: Final = 2.9  # twice the members may cost so much more: with the square it is four times
SECONDS: Final = 4


def packets(members: int) -> int:
    """The packets on loopback, acknowledgements of TCP included, while the group sends nothing."""
    command = [*ALONE, sys.executable, "-m", "tests.e2e.idle_group", str(members), str(SECONDS)]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=patience(140), check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.long
@pytest.mark.timeout(1200)  # 48 members share one event loop
def test_twice_the_members_send_twice_as_many_packets() -> None:
    few, many = packets(SMALL), packets(LARGE)
    assert few > SMALL * SECONDS, "each member sends heartbeats"
    assert many <= LINEAR * few, f"{few} packets of {SMALL} members, {many} of {LARGE}"
