"""The guide names every option, every limit and every event, and its examples are Python."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import pygroups
from pygroups import Channel, Config, Event

GUIDE = (Path(__file__).parents[2] / "docs/guides/channel.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table after the heading."""
    section = GUIDE.split(f"\n## {heading}\n")[1]
    lines = section[section.index("\n|") + 1 :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_option_is_in_the_table() -> None:
    named = [name for cells in rows("Joining") for name in re.findall(r"`(\w+)`", cells[0])]
    parameters = [name for name in inspect.signature(Channel).parameters if name not in ("group", "insecure")]
    assert sorted(named) == sorted(parameters)


def test_every_limit_is_in_the_table_with_its_default() -> None:
    units = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "%": 0.01, "messages": 1}
    table = {cells[0].strip("`"): cells[1].split() for cells in rows("Config")}
    assert list(table) == [name for name in Config.__struct_fields__ if name != "internal"]
    words = {"journal_keep": ["all"], "on_journal_lost": ['`"continue"`'], "slow_policy": ['`"wait"`']}
    words |= {"gossip_interval": ["drawn"], "dynamic": ["`True`"]}
    words |= {name: ["`False`"] for name in ("use_mcast_for_gossip", "late_join_handler", "catch_up")}
    assert {name: cells for name, cells in table.items() if len(cells) == 1} == words
    assert Config().journal_keep is None and Config().on_journal_lost == "continue"
    assert Config().slow_policy == "wait" and Config().gossip_interval is None and Config().dynamic
    assert not (Config().use_mcast_for_gossip or Config().late_join_handler or Config().catch_up)
    for name, (number, unit) in [(name, cells) for name, cells in table.items() if name not in words]:
        assert float(number) * units[unit] == getattr(Config(), name), name


def test_every_event_is_in_the_table_with_its_fields() -> None:
    kinds = [kind for kind in vars(pygroups).values() if isinstance(kind, type) and issubclass(kind, Event)]
    kinds.remove(Event)
    described = {cells[0].strip("`") for cells in rows("Reading")}
    assert described == {f"{kind.__name__}({', '.join(kind.__struct_fields__)})" for kind in kinds}


def test_the_examples_are_python() -> None:
    examples = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(examples) >= 8
    for example in examples:
        compile(f"async def _():\n{textwrap.indent(example, '    ')}", "channel.md", "exec")


def test_every_error_that_the_guide_names_is_offered() -> None:
    named = {"NameTaken", "Refused", "UsageError", "WouldBlock", "WouldDeadlock", "Timeout", "NotSent"}
    named |= {"Unknown", "ChannelClosed", "Excluded", "StateLost", "JournalFailed", "DeliveredElsewhere"}
    for name in named:
        assert f"`{name}" in GUIDE
        assert issubclass(getattr(pygroups, name), pygroups.Error)
