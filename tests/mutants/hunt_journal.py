"""Looks for M48 where the simulator cannot: in the turn of the real driver.  Played by the gate, not by `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kills import Kills


@pytest.mark.timeout(600)
def test_what_others_were_given_stands_in_the_journal_of_who_died(tmp_path: Path) -> None:
    """Deaths right before the journal is written: nothing of such a turn may be known to anybody."""
    Kills(tmp_path, seed=1).run(20, steps=("layers",))
