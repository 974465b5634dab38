"""Each group in a few numbers, and the few incarnations that the report shows, from the incarnations of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pygroups.pipeline.report.findings import Life, Overview

LIVES_SHOWN: Final = 100


def overviews(lives: Mapping[str, Sequence[Life]]) -> list[Overview]:
    """An overview of each group in `lives`; the groups with the most messages come first."""
    totals = [_overview(group, own) for group, own in lives.items()]
    return sorted(totals, key=lambda total: (-total.messages_sent, total.group))


def _overview(group: str, lives: Sequence[Life]) -> Overview:
    return Overview(
        group=group,
        names=len({life.member for life in lives}),
        lives=len(lives),
        crashes=sum(life.ending == "cut off" for life in lives),
        returns=sum(life.life > 1 for life in lives),
        messages_sent=sum(life.messages_sent for life in lives),
        messages_delivered=sum(life.messages_delivered for life in lives),
        bytes_sent=sum(life.bytes_sent for life in lives),
        profiles=sorted({life.profile for life in lives if life.profile is not None}),
        kinds=sorted({kind for life in lives for kind in life.kinds}),
        hosts=len({life.host for life in lives if life.host is not None}),
        start_us=min(life.from_us for life in lives),
        end_us=max(life.to_us for life in lives),
    )


def of_few_names(lives: Sequence[Life], names_shown: int) -> list[Life]:
    """The incarnations of at most `names_shown` names, those with trouble before the others, in the order of time."""
    by_need = sorted(lives, key=lambda life: (life.ending != "cut off", life.from_us, life.address))[:LIVES_SHOWN]
    names = list(dict.fromkeys(life.member for life in by_need))[:names_shown]
    return sorted((life for life in by_need if life.member in names), key=lambda life: (life.from_us, life.member))
