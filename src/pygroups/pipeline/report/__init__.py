"""The report: one HTML file that works offline, for a reader who has never seen a group.

`docs/decisions/0020-figures-without-a-library.md` explains why its figures are drawn here.
"""

from __future__ import annotations

from pathlib import Path

from pygroups.pipeline.report.gather import findings_of
from pygroups.pipeline.report.render import page_of
from pygroups.pipeline.verdict import AuditResult

__all__ = ["write_report"]


def write_report(path: Path, audit: AuditResult) -> None:
    """Writes the report of an audit to `path`, whose folder is made where it is missing.

    Raises OSError if the file cannot be written; then an earlier file at `path` is untouched.
    """
    page = page_of(findings_of(audit))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(path)
