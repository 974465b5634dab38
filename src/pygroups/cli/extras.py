"""What a plain `pip install pygroups` leaves out, and the sentence for a command that needs it."""

from __future__ import annotations

import importlib.util
from typing import Final

from pygroups.core.errors import UsageError

SPARK: Final = ("pyspark", "pyarrow", "pandas", "jinja2")
"""The packages of the extra `spark`, all of which the audit needs."""
ARROW: Final = ("pyarrow", "numpy")
"""Those that ingest needs."""


def check_spark(advice: str = "") -> None:
    """Raise UsageError if a package of the audit is not installed.  `advice`: what else the user can do."""
    _check(SPARK, "the audit needs Spark", advice)


def check_arrow() -> None:
    """Raise UsageError if a package of ingest is not installed."""
    _check(ARROW, "ingest needs Arrow", "")


def _check(names: tuple[str, ...], need: str, advice: str) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        what = ", ".join(missing)
        raise UsageError(f"{need}, and {what} cannot be found: pip install 'pygroups[spark]'{advice}")
