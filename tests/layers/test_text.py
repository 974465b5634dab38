"""Every conversation under `text/` goes as it is written down; `UPDATE=1` writes it down anew.  See conversation.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.layers.conversation import retold

TEXT = Path(__file__).parent / "text"
FILES = sorted(TEXT.glob("*/*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_conversation_goes_as_written(file: Path) -> None:
    written = file.read_text()
    told = retold(written, file.parent.name)
    if os.environ.get("UPDATE") == "1":
        file.write_text(told)
    else:
        assert told == written


def test_a_changed_line_is_noticed() -> None:
    script = "members A B\nsend A B x\ndeliver\n"
    told = retold(script, "discovery")
    assert told == "members A B\nsend A B x\ndeliver\n----\n  sent A>B [x]\n  B got [x] from A\n"
    assert retold(told, "discovery") == told
    assert retold(told.replace("got [x]", "got [y]"), "discovery") == told
