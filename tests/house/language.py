"""The plain language of documents and docstrings, as far as a program can judge it: CONTRIBUTING.md, "Language".

A clause that begins with "what" or "who" hides the noun that a reader needs.  As the subject at the start of
a sentence such a clause is an offence, and "whoever" is one everywhere.  So are private words, such as "is told" for
"gets" or "learns".  Questions, code and quoted words are allowed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .rules import nodes, parsed

DOCUMENTS = ("*.md", "docs/*.md", "docs/guides/*.md", "docs/layers/*.md")
OTHERS = ("CHANGELOG.md",)  # a history, and not read as a whole
ROOMS = ("channel", "cli", "core", "drivers", "journal", "layers", "pipeline", "sim", "testing", "wire")

_NOT_PROSE = re.compile(r"```.*?```|<!-- from .*?<!-- end -->|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL)
_START = r"(?:^|[.:;!?]\s+|\|\s|[-*]\s|\*\*\s?)"
_HIDDEN_SUBJECT = re.compile(rf"{_START}(What|Who|Whom|Whatever)\s[a-z][^.?!|]*(?:[.!|]|$)", re.MULTILINE)
_WHOEVER = re.compile(r"\b(who(?:m)?ever)\b", re.IGNORECASE)
_PRIVATE = re.compile(
    r"\b(somebody|anybody|everybody|(?:is|are|was|were|be|been)\s+(?:told|said)|comes?\s+to\s+rest)\b", re.IGNORECASE
)
"""Words that a reader would not search for: a member gets or learns a thing."""


def plain_language(root: Path) -> list[str]:
    """Sentences of documents and docstrings whose subject is a clause and not a noun."""
    return [
        f"{file.relative_to(root)}:{line}: {word!r} hides a noun or a usual term: name the member, event or process"
        for file, first, text in _texts(root)
        for line, word in _offences(text, first)
    ]


def _texts(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Each document and each docstring, with its file and its first line."""
    for pattern in DOCUMENTS:
        for file in sorted(root.glob(pattern)):
            if file.name not in OTHERS:
                yield file, 1, file.read_text()
    for room in ROOMS:
        for file in sorted((root / "src" / "pygroups" / room).rglob("*.py")):
            for node in nodes(parsed(file.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(node, clean=False)
                    if text is not None:
                        yield file, node.body[0].lineno, text


def _offences(text: str, first: int) -> Iterator[tuple[int, str]]:
    prose = _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), text)
    for pattern in (_HIDDEN_SUBJECT, _WHOEVER, _PRIVATE):
        for found in pattern.finditer(prose):
            yield first + prose.count("\n", 0, found.start(1)), found[1]
