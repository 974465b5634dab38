"""What docs/layers/gms.md shows of three tables of the code: the course of an attempt, and the replies to other views.

`UPDATE=1 pytest tests/layers/test_gms_attempt.py tests/layers/test_gms_other_views.py` writes them down anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pygroups.layers.gms.decisions.attempt import ENDS, STEPS, Deed, Stage
from pygroups.layers.gms.member.other_views import Row

NOTE = Path(__file__).parents[2] / "docs" / "layers" / "gms.md"


def picture() -> str:
    """The attempt as a state diagram: on each arrow the input, and after the slash what the leader does."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {_name(Stage.READY)}: send Ready"]
    for (stage, what), step in STEPS.items():
        deed = "" if step.deed is Deed.NOTHING else f" / {step.deed.value}"
        lines.append(f"    {_name(stage)} --> {_name(step.stage)}: {what.value}{deed}")
    return "\n".join([*lines, *(f"    {_name(end)} --> [*]" for end in ENDS), "```"])


def _name(stage: Stage) -> str:
    return stage.value.replace(" ", "_")


def replies(rows: Iterable[Row]) -> str:
    """A table of replies."""
    lines = [
        "| other process is in | it is in this view | an installation it lacks is here | it asks | reply |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [{None: "", True: "yes", False: "no"}[cell] for cell in row[1:4]]
        lines.append(f"| {' | '.join([row.theirs.value, *cells, row.reply.value])} |")
    return "\n".join(lines)


def in_the_note(name: str, drawn: str) -> bool:
    """Whether the note shows this between its marks for `name`; with UPDATE=1 it is written there."""
    begin, end = f"<!-- {name}: drawn by tests/layers/gms_drawn.py -->\n", f"\n<!-- {name}: end -->"
    text = NOTE.read_text()
    before, _, rest = text.partition(begin)
    shown, mark, after = rest.partition(end)
    assert mark, f"{NOTE} has no place for {name}"
    if os.environ.get("UPDATE") == "1":
        NOTE.write_text(before + begin + drawn + end + after)
        return True
    return shown == drawn
