"""Drawn schedules with all blocks as the application of each process: what was judged, and what was found.

    python -m bench.block_schedules --profile uniform --seeds 1000:2000

Each piece of 50 seeds is a line of results/block_schedules.jsonl.  The rules are those of tests/blocks/drawn.py: the
blocks are equal at each place of the order, no token and no number comes twice, what is read and written under a lock
is not overwritten, each task is done once, no call hangs.  The application of a schedule uses all blocks that its
profile carries, so each schedule counts for each of them.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Final

from bench.common import Result
from pygroups.testing import LeftOpen
from tests.blocks.drawn import Judge
from tests.blocks.test_drawn import play

PIECE: Final = 50  # schedules in a line


def counted(judge: Judge) -> Counter[str]:
    return Counter(
        dict_writes=judge.writes,
        replies=judge.replies,
        places_compared=judge.agreed,
        grants=len(judge.tokens),
        written_under_a_lock=len(judge.sold),
        numbers=len(judge.numbers),
        tasks_done=len(judge.done),
        stale_writes_refused=judge.stale,
        lives_ended_by_an_error=judge.ended,
    )


def piece(profile: str, seeds: range) -> None:
    """Play `seeds`, and write the line."""
    result, counts, found, cpu = Result("block_schedules"), Counter[str](), [], time.process_time()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                counts += counted(play(profile, seed, Path(folder)).judge)
            except BaseExceptionGroup as error:
                found.append(_found(seed, error))
            except Exception as error:  # noqa: BLE001 (what it is stands in the line)
                found.append(_found(seed, error))
    cpu = round(time.process_time() - cpu, 1)
    result.write(
        profile=profile, seeds=[seeds.start, seeds.stop], schedules=len(seeds), found=found, cpu_s=cpu, counts=counts
    )


def _found(seed: int, error: BaseException) -> dict[str, object]:
    traceback.print_exception(error)
    return {"seed": seed, "error": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--profile", default="uniform")
    options.add_argument("--seeds", default="1000:2000", help="from the first to before the second")
    given = options.parse_args()
    first, last = map(int, given.seeds.split(":"))
    logging.disable()
    warnings.simplefilter("ignore", LeftOpen)
    for start in range(first, last, PIECE):
        piece(given.profile, range(start, min(start + PIECE, last)))


if __name__ == "__main__":
    main()
