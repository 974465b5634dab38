"""The guide of the blocks and README are right: their programs run, and the guide names all that there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pygroups import blocks, sync
from pygroups.testing import Group
from tests.patience import patience

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "blocks.md").read_text()
README = (ROOT / "README.md").read_text()


def programs(text: str) -> list[str]:
    """The whole programs in a text."""
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [block for block in found if "asyncio.run(main())" in block and "Blocks(" in block]


@pytest.mark.slow
@pytest.mark.parametrize("text", [GUIDE, README], ids=["guide", "README"])
def test_two_processes_of_the_program_count_on(text: str, tmp_path: Path) -> None:
    (program,) = programs(text)
    file = tmp_path / "shop.py"
    loop = "        for _ in range(60):"
    both = f"        while len(blocks.members) < 2:\n            await asyncio.sleep(0.01)\n{loop}"
    program = program.replace('"shop"', f'"shop-{os.getpid()}"').replace("sleep(1)", "sleep(0.01)").replace(loop, both)
    file.write_text(program)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    outs = [tmp_path / name for name in "AB"]
    running = []
    for out in outs:
        with out.open("wb") as said:
            command = [sys.executable, "-u", str(file), out.name]
            running.append(subprocess.Popen(command, stdout=said, env=environment, cwd=tmp_path))
    assert [process.wait(patience(60)) for process in running] == [0, 0]
    counted = [int(number) for number in re.findall(r"\{'sold': (\d+)\}", "".join(out.read_text() for out in outs))]
    assert max(counted) == 120  # 60 of each process, none lost and none twice


async def test_the_test_of_the_guide_passes(group: Group) -> None:
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "async def test_" in one]
    names: dict[str, object] = {}
    exec(compile("import asyncio\nfrom pygroups.blocks import *\n" + block, "guide", "exec"), names)
    test = names["test_the_lock_of_a_crashed_process_is_free"]
    await test(group)  # type: ignore[operator]


def test_the_guide_names_all_that_there_is() -> None:
    assert [name for name in [*blocks.__all__, *sync.__all__] if not re.search(rf"\b{name}\b", GUIDE)] == []
