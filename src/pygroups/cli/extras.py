"""The packages that a plain `pip install pygroups` leaves out, and the error of a command that needs them."""

from __future__ import annotations

import importlib.util
from typing import Final

from pygroups.core.errors import UsageError

SPARK: Final = ("pyspark", "pyarrow", "pandas", "jinja2")
"""The packages of the extra `spark`.  The audit needs all of them."""
ARROW: Final = ("pyarrow", "numpy")
"""The packages that ingest needs."""


def check_spark(advice: str = "", what: str = "the audit") -> None:
    """Raise UsageError if a package that `what` needs is missing.  `advice`: another solution, for the message."""
    _check(SPARK, f"{what} needs Spark", advice)


def check_arrow() -> None:
    """Raise UsageError if a package of ingest is not installed."""
    _check(ARROW, "ingest needs Arrow", "")


def _check(names: tuple[str, ...], need: str, advice: str) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        what = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(f"{need}, and {what} {verb} not installed: pip install 'pygroups[spark]'{advice}")
