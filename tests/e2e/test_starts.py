"""Eight processes that start at the same moment found one group, not several."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.starts import start_at_once

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("start", range(3))
def test_eight_at_once_end_in_one_view(start: int, tmp_path: Path) -> None:
    start_at_once(tmp_path, prepared=start != 1)
