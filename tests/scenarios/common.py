"""What several scenarios are played with."""

from __future__ import annotations

import pytest

from pygroups.core.limits import MILLISECOND, SECOND

BOTH = pytest.mark.parametrize("profile", ["total", "fifo"])
MEMBERSHIP = pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
"""Where the membership is played, whose layers are the same in both."""
QUICK = {
    "heartbeat": 100 * MILLISECOND,
    "heartbeat_timeout": 400 * MILLISECOND,
    "verify_timeout": 200 * MILLISECOND,
    "ready_timeout": 200 * MILLISECOND,
    "flush_timeout": 300 * MILLISECOND,
    "connection_age": 3 * SECOND,
}
